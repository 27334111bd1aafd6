"""Sample pipelines on Quire, one in each folder."""
