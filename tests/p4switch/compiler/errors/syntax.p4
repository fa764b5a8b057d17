// Several errors in one go: the parser goes on after each.
header h_t {
    bit<8> a
    bit<8> b;                              // error: expected ';', not 'bit'
    bit<> c;                               // error: expected an expression, not '>'
}

struct s_t {
    h_t h;
    bit<8 d;                               // error: expected '>', not identifier 'd'
}

control c(inout s_t s) {
    action a() {
        s.h.b = ;                          // error: expected an expression, not ';'
        s.h.b = 1;
        s.h.b + 1;                         // error: expected '=' or a call, not '+'
        if s.h.b == 1) { }                 // error: expected '(', not identifier 's'
    }
    bogus;                                 // error: expected a name, not ';'
    table t {
        actions = { a; }
        actions = { a; }                   // error: duplicate table property 'actions'
        size 10;                           // error: expected '=', not integer '10'
    }
    table empty { size = 1; }              // error: table 'empty' has no list of actions
    apply {
        bit<8> x = 1 1;                    // error: expected ';', not integer '1'
        c(8);                              // error: expected a name, not ';'
        8w2 = x;                           // error: expected a statement, not integer '8w2'
    }
}

bit<8> variable = 1;                       // error: variable 'variable' cannot be declared outside
extern e_t {
    wrong();                               // error: method 'wrong' has no return type, and is no constructor of 'e_t'
}
@pairs[x = 1, x = 2]                       // error: duplicate key 'x' in annotation @pairs
const bit<8> k = 1;
#define LONG bit<8> f
struct expanded_t { LONG; bit<8> LONG; }   // error: expected a name, not 'bit'
const bit<8> n = 0x;                       // error: expected ';', not identifier 'x'
