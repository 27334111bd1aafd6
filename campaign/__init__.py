"""A campaign: seeds, mutants and an outside judge for as long as there is time, recorded in a ledger.

campaign.py   what runs next, and for how long
ledger.py     the file `docs/campaign.jsonl`: one line for each batch that has run

A campaign resumes where the last one ended, so every seed of a kind runs once, on the commit that is current by then.
Run it with `make campaign MINUTES=60`.
"""
