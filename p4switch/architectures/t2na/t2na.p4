// The second Tofino Native Architecture. Its additions are declared in tofino.p4, under P4CC_TOFINO.

#ifndef _P4CC_T2NA_
#define _P4CC_T2NA_

#define P4CC_TOFINO 2
#ifndef __TARGET_TOFINO__
#define __TARGET_TOFINO__ 2
#endif

#include "../tna/tofino.p4"

#endif
