-- A summary table over the view: changes are added up, and only the groups that they fall into are touched.
CREATE MATERIALIZED VIEW sales_by_city AS
SELECT city, COUNT(*) AS orders, SUM(amount) AS amount, MAX(amount) AS largest
FROM named_orders
GROUP BY city;
