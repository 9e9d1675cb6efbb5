CREATE TABLE invoices (
    id integer PRIMARY KEY,
    customer_id integer REFERENCES customers (id)
);

CREATE VIEW open_invoices AS
SELECT i.id FROM invoices AS i JOIN customers ON customers.id = i.customer_id;

CREATE FUNCTION invoice_total(integer) RETURNS integer AS 'SELECT 1' LANGUAGE sql;

SELECT invoice_total(id) FROM open_invoices;
