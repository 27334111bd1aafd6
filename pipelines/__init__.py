"""Systems that stand on Quire, to run and to learn from: each folder is one of them."""
