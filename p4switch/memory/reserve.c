/* A reserve of memory for a Python process that runs out.
 *
 * CPython is not dependable without memory. A call for which there is no frame may return without an exception, the
 * `__exit__` of a block may be skipped, and locks then stay held. So the first small allocation that fails gets its
 * memory from the reserve. MemoryError is raised between two bytecodes instead, and the rest of the reserve is left for
 * the clean-up.
 */
#include <Python.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

static _Atomic(void *) reserve;
static size_t reserve_bytes;
static PyMemAllocatorEx memory;       /* of large objects, and of small ones for which there is no arena */
static PyObjectArenaAllocator arenas; /* of small objects, and of frames */
static atomic_bool is_cleaning_up;    /* since `free_reserve` */

static bool is_handled(void)
{
    PyObject *kind, *error, *trace;
    PyErr_GetExcInfo(&kind, &error, &trace);
    Py_XDECREF(kind);
    Py_XDECREF(trace);
    bool found = false;
    while (error && error != Py_None && !found) {
        found = PyErr_GivenExceptionMatches(error, PyExc_MemoryError);
        PyObject *context = PyException_GetContext(error);
        Py_DECREF(error);
        error = context;
    }
    Py_XDECREF(error);
    return found;
}

/* A clean-up that is under way is not disturbed. */
static int tell(void *unused)
{
    (void)unused;
    if (is_cleaning_up || is_handled())
        return 0;
    PyErr_NoMemory();
    return -1;
}

static bool unmapped(void)
{
    void *kept = atomic_exchange(&reserve, NULL);
    if (kept)
        munmap(kept, reserve_bytes);
    return kept;
}

/* Whether there is room for another try. The caller need not hold the interpreter's lock. */
static bool released(size_t wanted_bytes)
{
    if (wanted_bytes > reserve_bytes / 4 || !unmapped())
        return false;
    Py_AddPendingCall(tell, NULL);
    return true;
}

static void *take(void *unused, size_t bytes)
{
    (void)unused;
    void *taken = memory.malloc(memory.ctx, bytes);
    return taken || !released(bytes) ? taken : memory.malloc(memory.ctx, bytes);
}

static void *take_zeros(void *unused, size_t count, size_t bytes)
{
    (void)unused;
    void *taken = memory.calloc(memory.ctx, count, bytes);
    return taken || !released(count * bytes) ? taken : memory.calloc(memory.ctx, count, bytes);
}

static void *change(void *unused, void *old, size_t bytes)
{
    (void)unused;
    void *taken = memory.realloc(memory.ctx, old, bytes);
    return taken || !released(bytes) ? taken : memory.realloc(memory.ctx, old, bytes);
}

static void give_back(void *unused, void *old)
{
    (void)unused;
    memory.free(memory.ctx, old);
}

static void *take_arena(void *unused, size_t bytes)
{
    (void)unused;
    void *taken = arenas.alloc(arenas.ctx, bytes);
    return taken || !released(bytes) ? taken : arenas.alloc(arenas.ctx, bytes);
}

static void give_back_arena(void *unused, void *old, size_t bytes)
{
    (void)unused;
    arenas.free(arenas.ctx, old, bytes);
}

/* Makes the reserve, unless there is one. Returns whether there is one now. */
int keep_reserve(size_t bytes)
{
    is_cleaning_up = false;
    if (reserve)
        return 1;
    void *mapped = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return 0;
    reserve_bytes = bytes;
    reserve = mapped;
    if (!memory.malloc) {
        PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &memory);
        PyObject_GetArenaAllocator(&arenas);
        PyMemAllocatorEx retrying = {NULL, take, take_zeros, change, give_back};
        PyObjectArenaAllocator retrying_arenas = {NULL, take_arena, give_back_arena};
        PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &retrying);
        PyObject_SetArenaAllocator(&retrying_arenas);
    }
    return 1;
}

/* Gives the reserve to a clean-up, whose C library calls need memory, too. No MemoryError interrupts it. */
void free_reserve(void)
{
    is_cleaning_up = true;
    unmapped();
}
