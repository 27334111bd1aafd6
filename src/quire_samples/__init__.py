"""Sample systems that run on Quire, beside the product and built only on what any program can use.

- `shop`: events of a shop's visitors, for the pipelines in `pipelines/shop`
- `inventory`: an inventory that can be audited: commands, a transactional processor, a view over HTTP, a check
- `live`: `make run` (a node, both systems and their pipelines, with a live view) and `make broker` (a node alone)
- `main`: the `quire-samples` command; `paced_sending` sends records at a given rate for both systems

The samples use `quire.client` with `quire.steps`, `quire.console`, `quire.spark` and `quire.testing`, and run `quire`
as a process. Nothing in `quire` imports them.
"""
