"""An inventory that can be audited: every change of the stock is recorded, with its cause.

    inventory-commands --> processor --> inventory-events  --> the view of current stock, over HTTP
     shipments, orders        |      \\                   \\--> the lake: every event, for the audit
                              |       -> inventory-refusals
                              one transaction: events, refusals and the offset of the next command

`commands` and `events` define the records, `stock` decides, `seen` recognises repeated commands, `topics` creates the
topics. `processor` executes commands, `view` follows the events, `check` compares what must be equal. All of
this runs on the seams. `cli` has the commands of `quire-samples inventory`; the Spark job that archives the events is
in pipelines/inventory, and `lake` reads that archive.
"""
