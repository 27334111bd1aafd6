"""The schema of the shop's events, and the rules for valid ones."""

from quire.spark.parsing import Rule

PRODUCT_VIEWED = "product_viewed"
ADD_TO_CART = "add_to_cart"
PURCHASE_COMPLETED = "purchase_completed"
SHOP_EVENTS = "shop_events"

SCHEMA = (
    "event_id string, event_time timestamp, user_id string, agent string, "
    "product_id string, price_cents long, quantity int, order_id string"
)

CLEAN_SCHEMA = f"{SCHEMA}, kind string"
"""An event in shop_events has its kind as a field; the kind of a raw event is its topic."""

RULES = (
    Rule("has_an_id", "event.event_id IS NOT NULL"),
    Rule("has_a_time", "event.event_time IS NOT NULL"),
    # A single event from the far future would move the watermark there, and every other event would be late.
    Rule("is_not_from_the_future", "event.event_time < timestamp + INTERVAL 366 DAYS"),
    Rule("has_a_user", "event.user_id IS NOT NULL"),
    Rule("has_a_product", "event.product_id IS NOT NULL"),
    Rule("has_a_price", "event.price_cents >= 0"),
    Rule("has_a_quantity", f"topic = '{PRODUCT_VIEWED}' OR event.quantity > 0"),
)
