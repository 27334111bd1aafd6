"""Sample pipelines on Quire, to run and to learn from: one in each folder."""
