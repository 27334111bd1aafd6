"""A shop in real time: events are cleaned once, and sales, top products and sessions are computed from the clean ones.

    clean      three topics -> shop_events, without duplicates, late ones and bots; broken ones -> <topic>.dlq
    results    shop_events -> sales_per_minute, sales_5m, top_viewed_products, sessions
    archive    three topics, as they are -> a Delta table by date

`shop.yaml` configures the queries; `quire-samples shop send` sends events; docs/pipelines.md has a diagram.
"""
