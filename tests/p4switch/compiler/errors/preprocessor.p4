// Positions hold through includes, macros and continued lines.
#include "names.inc"
#define WIDTH 8
#define FIELD(t, n) t n;
#define LONG bit<WIDTH> \
    f
struct s_t {
    FIELD(bit<WIDTH>, a)
    FIELD(bit<WIDTH>, a)                   // error: duplicate field 'a'
    LONG;
}
#if WIDTH > 16 || defined(NOTHING)
this is no P4
#elif WIDTH == 8 && !defined NOTHING
const from_include k = true;               // error: expected bit<4> for constant 'k', not bool
#else
nor is this
#endif
/* a comment
   of two lines */ const bit<8> z = true;  // error: expected bit<8> for constant 'z', not bool
