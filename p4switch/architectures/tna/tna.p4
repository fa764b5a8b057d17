// The Tofino Native Architecture: a chip with 4 pipes.

#ifndef _P4CC_TNA_
#define _P4CC_TNA_

#define P4CC_TOFINO 1
#ifndef __TARGET_TOFINO__
#define __TARGET_TOFINO__ 1
#endif

#include "tofino.p4"

#endif
