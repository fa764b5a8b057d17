@name(5)                                   // error: annotation @name needs one string
const bit<8> a = 1;
@list[1, "two", true, 1 + 2]
const bit<8> b = 1;
@pairs[x = 1, y = "z"]
const bit<8> c = 1;
@value[unknown]                            // error: name 'unknown' is not declared
const bit<8> d = 1;
@free(anything goes: 'here' #)
const bit<8> e = 1;
@dup[] @dup[]                              // error: annotation @dup is given twice, and one is structured
const bit<8> f = 1;
@p4runtime_translation("x", bool)          // error: annotation @p4runtime_translation needs a string and then
type bit<8> t;
