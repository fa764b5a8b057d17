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
@p4runtime_translation("x", bit<99999999999>) // error: annotation @p4runtime_translation needs a string and then
type bit<8> wide;
@id(1 << 40)                               // error: annotation @id needs a number from 0 to 4294967295
const bit<8> g = 1;
@id("seven")                               // error: annotation @id needs a number from 0 to 4294967295
const bit<8> h = 1;
@max_group_size(1 << 31)                   // error: annotation @max_group_size needs a number from 0 to 2147483647
const bit<8> i = 1;
@value[1 << 63]                            // error: the value in an annotation must fit into 64 bits
const bit<8> j = 1;
@platform_property(multicast_group_table_size = many) // error: multicast_group_table_size is 'many': a whole number
const bit<8> k = 1;
