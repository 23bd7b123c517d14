-- A join over two databases that know nothing of each other. Each of its states is one that both of them had, and none
-- is skipped: that is complete consistency. Other levels are strong, weak and convergent.
CREATE MATERIALIZED VIEW named_orders
TBLPROPERTIES ('consistency' = 'complete')
AS
SELECT o.id, p.name, p.city, o.item, o.amount
FROM shop.orders o
JOIN customers.people p ON o.customer = p.id;
