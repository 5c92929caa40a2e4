/* A disk whose sync of the write-ahead log fails when told to: preloaded into a process of its own.
   It fails while a file named by FAIL_SYNC is there, and once where there is one named so with ".once" after it; with ".die", the
   process ends there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int fd) {
    const char *told = getenv("FAIL_SYNC");
    char link[64], path[PATH_MAX], once[PATH_MAX], die[PATH_MAX];
    if (!told) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    if (length < 4 || memcmp(path + length - 4, "-wal", 4) != 0) return 0;
    snprintf(once, sizeof once, "%s.once", told);
    snprintf(die, sizeof die, "%s.die", told);
    if (unlink(die) == 0) _exit(1);
    return access(told, F_OK) == 0 || unlink(once) == 0;
}

static int sync_by(const char *name, int fd) {
    int (*real)(int);
    if (fails(fd)) {
        errno = EIO;
        return -1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, name);
    return real(fd);
}

int fsync(int fd) { return sync_by("fsync", fd); }
int fdatasync(int fd) { return sync_by("fdatasync", fd); }
