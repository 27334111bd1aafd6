"""Log compaction: keeps the last record of each key, at its offset. Tombstones are kept for `delete.retention.ms`.

    cleaner ──▶ cleanable                which log to clean next, and how far
            ──▶ cleaning_run ──▶ work    one cleaning run, in jobs
                           ├─ offset_map_builder  key -> last offset, in a table of fixed size (offset_map)
                           └─ filtering           copies retained records; special_batches, transactions
            ──▶ swap                     replaces the original segments by the cleaned one
            ──▶ cleaned_offsets          how far each log is clean

The loops over records are in `filter_native` and `offset_map_builder_native`. Offsets and order never change. The last
batch of each producer is retained even if it is empty, because the producer continues from its sequence number.
"""
