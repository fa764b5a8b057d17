/* A process that crashes because it gets no memory is replaced by another program, which cleans up with memory of its
 * own. `must_have` and the compiled hosts abort so deep inside a run that nothing can be undone there; protobuf copies
 * strings to a null pointer.
 */
#define _GNU_SOURCE
#include "fabric.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROBE_BYTES ((size_t)1 << 30)

extern char **environ;
static char **program; /* its arguments, up to NULL; of process `owner` */
static pid_t owner;

static const int crashes[] = {SIGABRT, SIGSEGV};
#define CRASHES (sizeof crashes / sizeof *crashes)
static struct sigaction before[CRASHES];
static bool is_set;

static void restore(void)
{
    for (size_t i = 0; is_set && i < CRASHES; i++)
        sigaction(crashes[i], &before[i], NULL);
    is_set = false;
}

/* Uses only functions that a signal handler may call. A crash for another reason, or of a forked worker, is not
 * changed. */
static void become(int number)
{
    if (program && getpid() == owner) {
        void *probe = mmap(NULL, PROBE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (probe == MAP_FAILED)
            execve(program[0], program, environ);
    }
    restore();
    raise(number);
}

static void forget(void)
{
    for (char **each = program; each && *each; each++)
        free(*each);
    free(program);
    program = NULL;
}

PyObject *fabric_on_crash(PyObject *unused, PyObject *arguments)
{
    (void)unused;
    PyObject *given = PySequence_Fast(arguments, "on_crash: expected a sequence of bytes");
    if (!given)
        return NULL;
    forget();
    Py_ssize_t count = PySequence_Fast_GET_SIZE(given);
    char **made = calloc((size_t)count + 1, sizeof *made);
    for (Py_ssize_t i = 0; made && i < count; i++) {
        const char *text = PyBytes_AsString(PySequence_Fast_GET_ITEM(given, i));
        made[i] = text ? strdup(text) : NULL;
        if (!made[i]) {
            program = made;
            forget();
            Py_DECREF(given);
            return PyErr_Occurred() ? NULL : PyErr_NoMemory();
        }
    }
    Py_DECREF(given);
    if (!made)
        return PyErr_NoMemory();
    restore();
    owner = getpid();
    if (count) {
        program = made;
        struct sigaction handler = {.sa_handler = become};
        for (size_t i = 0; i < CRASHES; i++)
            sigaction(crashes[i], &handler, &before[i]);
        is_set = true;
    } else {
        free(made);
    }
    Py_RETURN_NONE;
}
