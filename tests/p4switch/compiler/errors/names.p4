#include <core.p4>

struct s_t {
    bit<8> a;
    bit<8> a;                              // error: duplicate field 'a'
    Missing m;                             // error: type 'Missing' is not declared
}

enum e_t { x, y, x }                       // error: duplicate member 'x'
const bit<8> one = 1;
const bit<8> one = 2;                      // error: 'one' is already declared (line 10)
error { NoError }                          // error: 'NoError' is already declared
match_kind { exact }                       // error: 'exact' is already declared

control c(inout s_t s, in bit<8> p, in bit<8> p) {  // error: duplicate parameter 'p'
    action early() { late(); }             // error: name 'late' is not declared
    action late() { }
    action late(in bit<8> x) { }           // error: 'late' is already declared (line 17)
    apply {
        bit<8> s = 1;                      // error: 's' hides a parameter of that name (line 15)
        S.a = 1;                           // error: name 'S' is not declared (did you mean 's'?)
        unknown = 1;                       // error: name 'unknown' is not declared
        bit<8> z = one.a;                  // error: bit<8> has no member 'a'
        z = p.a;                           // error: bit<8> has no member 'a'
        s_t v;
        v.b = 1;                           // error: s_t has no member 'b'
        e_t e = e_t.w;                     // error: e_t has no member 'w'
        error f = error.Nothing;           // error: error has no member 'Nothing'
    }
}
