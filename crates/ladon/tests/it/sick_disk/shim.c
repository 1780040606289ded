/* A disk that obeys files in $SICK_DISK_DIR, put between Ladon and the C library with LD_PRELOAD:
 *
 *   hold-sync        fdatasync waits until the file is gone
 *   fail-sync        fdatasync fails with EIO
 *   hold-read        pread waits until the file is gone
 *   hold-write       pwrite waits until the file is gone
 *   hold-checkpoint  pwrite to a file of a checkpoint waits until the file is gone
 *   full             pwrite fails with ENOSPC
 *   full-checkpoint  pwrite to a file of a checkpoint fails with ENOSPC
 *   full-checkpoint-once  the same, and removes the file that says so
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int told(const char *what) {
    const char *dir = getenv("SICK_DISK_DIR");
    char path[4096];
    if (!dir) return 0;
    snprintf(path, sizeof path, "%s/%s", dir, what);
    return access(path, F_OK) == 0;
}

static int told_once(const char *what) {
    char path[4096];
    if (!told(what)) return 0;
    snprintf(path, sizeof path, "%s/%s", getenv("SICK_DISK_DIR"), what);
    return unlink(path) == 0;
}

static int is_checkpoint(int file) {
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length <= 0) return 0;
    name[length] = 0;
    return strstr(name, "checkpoint") != NULL;
}

int fdatasync(int file) {
    static int (*next)(int);
    if (!next) next = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    while (told("hold-sync")) usleep(1000);
    if (told("fail-sync")) {
        errno = EIO;
        return -1;
    }
    return next(file);
}

ssize_t pread64(int file, void *bytes, size_t count, off64_t offset) {
    static ssize_t (*next)(int, void *, size_t, off64_t);
    if (!next) next = (ssize_t (*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
    while (told("hold-read")) usleep(1000);
    return next(file, bytes, count, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    static ssize_t (*next)(int, const void *, size_t, off64_t);
    if (!next) next = (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    while (told("hold-write")) usleep(1000);
    while (told("hold-checkpoint") && is_checkpoint(file)) usleep(1000);
    if (told("full") || (is_checkpoint(file) && (told("full-checkpoint") || told_once("full-checkpoint-once")))) {
        errno = ENOSPC;
        return -1;
    }
    return next(file, bytes, count, offset);
}
