-- Expressions and functions.
CREATE TABLE t (id INTEGER PRIMARY KEY, name STRING, d DOUBLE, n NUMBER, s SCALAR)
INSERT INTO t VALUES (1,'a',1.5,2,3),(8,'b',null,null,null)
SELECT id FROM t AS q WHERE q.nope = 1
SELECT w.id FROM t
SELECT a.id FROM t a, t a
SELECT trim('a','b')
SELECT coalesce(1)
SELECT substr('a')
SELECT char_length(1)
SELECT upper(1)
SELECT 1 FROM t GROUP BY 1
SELECT id+1 AS x, x FROM t
SELECT id+1 AS x FROM t WHERE x > 2
SELECT 1 ORDER BY 1 UNION SELECT 2
SELECT 1 AS a UNION SELECT 'b'
SELECT 1 AS a UNION ALL SELECT 'b'
SELECT 1 IN (1,NULL)
SELECT 3 IN (1,NULL)
SELECT (1,2) IN ((1,2))
SELECT 1 WHERE false
INSERT INTO t(id,id) VALUES (77,78)
SELECT 'a' IS NULL
SELECT 1 IS 1
SELECT 1 = 1 = true
VALUES(1)
VALUES (1),('a')
SELECT typeof(1+1)
SELECT ROW_COUNT()
SELECT 1 FROM t LIMIT 1.5
SELECT CAST(1.7 AS BOOLEAN)
SELECT CAST('1.7' AS INTEGER)
SELECT 1.5 % 2
SELECT 1.0/0
SELECT 1 | 1.5
SELECT 'x' | 1
SELECT x'31' + 1
SELECT true + 1
SELECT - true
SELECT ~ 'a'
SELECT hex(NULL)
SELECT hex(1)
SELECT length(123)
SELECT length(true)
SELECT group_concat(id, '-') FROM t
SELECT sum('a')
SELECT sum('1')
SELECT sum(true)
SELECT avg(1), avg(2.5), sum(1.5), total(1)
SELECT sum(x'31')
SELECT max('a', 'b')
SELECT min(NULL)
SELECT count(1), count(NULL), count()
SELECT count(1,2)
SELECT abs(true)
SELECT abs(x'31')
SELECT round(1.55, 1), round(-2.5), round(1234567.891, -2), round('a'), round(2.345, 2)
SELECT quote(1.5), quote(1), quote(x'ab'), quote(NULL), quote(true)
SELECT upper(true)
SELECT char(NULL), char('a')
SELECT substr('hello', -3, 2), substr('hello', 0, 2), substr('hello', 2, -1), substr('hello', -10, 7)
SELECT replace(123, 2, 'x')
SELECT zeroblob(-1)
SELECT unicode(''), unicode('abc'), unicode(5)
SELECT printf('%5d|%-5d|%05d|%.2f|%s|%x|%c|%%|%q', 1, 2, 3, 1.555, 'a', 255, 'b', 'c')
SELECT printf('%s')
SELECT likelihood(true, 0.5)
SELECT nullif(1, '1')
SELECT greatest(1, 'a'), least(1,'a')
SELECT position(1, 'a')
SELECT trim(5)
SELECT lower(x'41')
SELECT typeof(CAST(1 AS NUMBER)), typeof(CAST('a' AS SCALAR))
SELECT position('b','abc' COLLATE "unicode_ci")
DROP TABLE t
DROP VIEW IF EXISTS v
DROP VIEW IF EXISTS vv
DROP TABLE IF EXISTS c2
DROP TABLE IF EXISTS c1
DROP TABLE IF EXISTS a1
DROP TABLE IF EXISTS t2
DROP TABLE IF EXISTS t
DROP TABLE IF EXISTS x
DROP TABLE IF EXISTS xx
DROP TABLE IF EXISTS xy
DROP TABLE IF EXISTS xz
DROP TABLE IF EXISTS zz
