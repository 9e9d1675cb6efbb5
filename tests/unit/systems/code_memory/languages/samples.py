"""A sample of each language with most of its forms."""

# ruff: noqa: E501

SAMPLES = {
    "typescript": """\
// license

/** doc é */
@Dec()
export default class A<T> extends B<C> implements D, E {
  private x: Svc = 1;
  constructor(private readonly s: Svc, n?: number) { super(); this.s.go(n); this.y(); new Foo(); helper(1); d.run() }
  y(): string { return fetch(`/api/users/${this.id}/x`, { method: 'post' }) }
  m = (a: A) => { this.x.stop(); a.y(); };
}
import d, { Svc, Foo as F2 } from "g";
export { a as b, type T } from './x'; export * from 'y'; export * as ns from 'z';
function helper(d) { d(); }  // trailing
const api = axios.create({ baseURL: '/api/' });
export const load = async (id: number): Promise<User> => api.get('/invoices/' + id);
export const {p, q: r, ...s} = o, [u] = v;
module.exports = { a, b: c, d() {} };
namespace N.M { export function zz() {} }
""",
    "vue": """\
<!-- <script>no</script> -->
<template><div v-if="a > b"><template #x>é😀</template></div></template>
<script lang="ts">
export const shared = 1
</script>
<script setup lang="ts" generic="T extends Record<string, A>">
import { save } from './api'
defineOptions({ name: 'Cart' })
const x = ref(1)
function go(a: number) { save(a); go(1); axios.post(`/cart/${a}`) }
</script>
<style scoped>a > b {}</style>
""",
    "swift": """\
import SwiftUI
import struct Foundation.Date

/// doc
@MainActor public struct V: View, Q {
  @State private var x: Foo = 1; let s: Svc
  var body: some View { Text("a") }
  init(a b: Int, _ c: String = "") { self.s = c }
  func go(x y: Foo?) throws -> Bar { y.run(); self.h(); h(); Foo(a: 1); s.load(); self.s.save(); y?.opt(); V.stat() }
  subscript(i: Int) -> Int { 1 }
}
final class C<T>: D, E {}
extension Foo.Bar: Codable { func z() where T: X {} }
protocol P: AnyObject { func f(a: Int) -> String }
public func top<T>(a: T) -> [T] where T: X { top(1) }
let g = 1
""",
    "go": """\
package billing

import (
	"fmt"
	x "a/b"
	"github.com/foo/go-bar/v2"
)

// Doc.
type (
	A struct { B; *x.D; e x.F; g *H }
	G interface { H(); I }
)
type J = K
func (r *A[T]) M(a, b int, c ...x.Y) (int, error) { fmt.Println(a); r.N(); L(); r.e.Do(); r.g.Run(); bar.Z(); x.Q{} }
func L[T any](q *A) A { q.M(); fmt := 1; fmt.Foo(); return A{} }
const ( Q = iota; R )
var ( S, T = 1, 2
 U int )
""",
    "java": """\
package a.b;
import c.D;
import static e.F.g;
/** doc */
@Ann("x") public class A<T> extends B<T> implements C, D<E> {
  private final Svc s; int x = 1, y;
  @Inject public A(Svc s) { this.s = s; s.go(); this.s.stop(); }
  @Override protected <R> List<R> m(int a, String... b) throws X { new Foo().bar(); this.n(); m(1); D.stat(); g(); return new D(); }
  static class In {}
  enum E { P { void q() {} }, Q; void z() {} }
}
interface I extends J, K { void f(); default int d() { return 1; } }
record R(int a, D b) implements I { R { b.go(); } }
""",
    "rust": """\
//! crate doc
use std::collections::{HashMap as M, self, hash_map::{Entry}};
use crate::a::*;
/// doc
#[derive(Debug)]
pub struct A<T> { pub x: Foo, y: u8 }

impl<T> Tr for A<T> { fn new(a: Foo) -> Self { a.run(); self.go(); self.x.stop(); Self::h(); A::z(); y(); M::new(); crate::p::q(); A { x: 1 } } const Q: u8 = 1; }
impl a::B { pub async fn f(&self, b: &mut Foo) { b.c() } }
pub trait Tr: Su + Sd { fn g(&self); fn h() {} }
pub(crate) mod m { use super::zz; fn inner() { zz(); } }
fn y() {}
macro_rules! mm { () => {} }
mod other;
extern "C" { fn cc(); }
""",
    "sql": """\
-- header

-- Invoices; with ' quote
CREATE TABLE IF NOT EXISTS `shop`.`invoices` (
  id int, -- a;b
  name varchar(10) DEFAULT 'it\\'s; x'
) ENGINE=InnoDB;
/*!40101 SET x=1 */;
INSERT INTO `invoices` VALUES (1,'a;b'),
(2,'c');
CREATE UNIQUE INDEX i_x ON invoices (id);
CREATE OR REPLACE FUNCTION f(a int) RETURNS int AS $body$ BEGIN RETURN 1; END; $body$ LANGUAGE plpgsql;
CREATE TRIGGER tr AFTER INSERT ON invoices BEGIN UPDATE x SET a = CASE WHEN 1 THEN 2 END; DELETE FROM y; END;
DELIMITER //
CREATE PROCEDURE p() BEGIN SELECT 1; IF 1 THEN SELECT 2; END IF; END //
DELIMITER ;
CREATE MATERIALIZED VIEW public."My View" AS SELECT * FROM t;
ALTER TABLE ONLY public.users ADD COLUMN a int;
BEGIN;
DROP TABLE old;
COMMIT;
CREATE INDEX ON t (a);
select 'unclosed
""",
}
