/* A clock that stands elsewhere: preloaded into a process, by CLOCK_AHEAD_S seconds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *at) {
    int (*real)(clockid_t, struct timespec *);
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int ended = real(id, at);
    const char *ahead = getenv("CLOCK_AHEAD_S");
    if (ended == 0 && id == CLOCK_REALTIME && ahead) at->tv_sec += atoll(ahead);
    return ended;
}
