"""Commands about a cluster as a whole: `quire cluster`, `quire topics` and `quire configs`.

`config_changes` is what topics and configs share: changes of settings, checked and applied.
"""
