"""Log compaction: of each key the last record stays, at its offset; a record without a value stays for a while.

    cleaner ──▶ cleanable                which log next, and how far
            ──▶ round ──▶ work           one round, in jobs
                           ├─ learning   key -> last offset, in a table of fixed memory (offset_map)
                           └─ filtering  what stays, into cleaned_segment; special_batches, transactions
            ──▶ swap                     puts it in place of what it was made from
            ──▶ cleaned_offsets          how far each log is clean

The loops over records are in `filter_native`. Offsets never change, order is kept, and so is what producers need to go
on: a batch that is the last of its producer stays even if it is empty.
"""
