"""An inventory that can be audited: what came in, what went out, and why each number is what it is.

    inventory-commands --> processor --> inventory-events  --> the view of current stock, over HTTP
     shipments, orders        |      \\                   \\--> the lake: every event ever, for the audit
                              |       -> inventory-refusals
                              one transaction: events, refusals and how far the commands are done

`commands` and `events` say what the records hold, `stock` decides, `seen` recognises what comes twice, `topics` makes
the topics. `processor` carries commands out, `view` follows the events, `check` compares what must be equal. All of it
runs on the seams; the commands are `quire inventory`, `quire view inventory` and `quire demo inventory`, and the Spark
job that archives the events is in pipelines/inventory.
"""
