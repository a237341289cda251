/* A disk that fails: preloaded before the C library, it lets one call that changes files fail, or that one and
 * all that follow. A disk that is full for good still removes files. Only files under the directory in FAULTS_UNDER count.
 *
 * The process steers it by names that are never removed: unlink("/faults/once/7") lets the seventh call from
 * now on fail, unlink("/faults/from/7") that and all later ones, and unlink("/faults/off") ends it: 0 says that
 * a call has failed. How many there were then stands in the file FAULTS_COUNT. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long calls, at;
static atomic_int for_good, struck;

static int is_under(const char *path) {
    const char *under = getenv("FAULTS_UNDER");
    return under && path && strncmp(path, under, strlen(under)) == 0;
}

static int is_open_under(int fd) {
    char link[40], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_under(path);
}

static int fails(int counts) {
    long wanted = atomic_load(&at);
    if (!wanted || !counts) return 0;
    long call = atomic_fetch_add(&calls, 1) + 1;
    if (call != wanted && !(atomic_load(&for_good) && call > wanted)) return 0;
    atomic_store(&struck, 1);
    errno = wanted % 2 ? ENOSPC : EIO;
    return 1;
}

static void tell_count(void) {
    const char *path = getenv("FAULTS_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%ld", atomic_load(&calls));
    fclose(file);
}

static int steer(const char *path) {
    const char *once = "/faults/once/", *from = "/faults/from/";
    int is_once = !strncmp(path, once, strlen(once)), is_from = !strncmp(path, from, strlen(from));
    atomic_store(&at, 0);
    if (is_once || is_from) {
        atomic_store(&calls, 0);
        atomic_store(&struck, 0);
        atomic_store(&for_good, is_from);
        atomic_store(&at, atol(path + strlen(once)));
        return 0;
    }
    tell_count();
    if (atomic_load(&struck)) return 0;
    errno = ENOENT;
    return -1;
}

#define REAL(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

int unlink(const char *path) {
    if (!strncmp(path, "/faults/", 8)) return steer(path);
    return fails(!atomic_load(&for_good) && is_under(path)) ? -1 : REAL(unlink)(path);
}
int rename(const char *from, const char *to) {
    return fails(is_under(to)) ? -1 : REAL(rename)(from, to);
}
int linkat(int a, const char *from, int b, const char *to, int flags) {
    return fails(is_under(to)) ? -1 : REAL(linkat)(a, from, b, to, flags);
}
int mkdir(const char *path, mode_t mode) {
    return fails(is_under(path)) ? -1 : REAL(mkdir)(path, mode);
}
int fsync(int fd) { return fails(is_open_under(fd)) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fails(is_open_under(fd)) ? -1 : REAL(fdatasync)(fd); }
int ftruncate64(int fd, off64_t length) {
    return fails(is_open_under(fd)) ? -1 : REAL(ftruncate64)(fd, length);
}

/* What does not fit on a disk is written in part. */
ssize_t write(int fd, const void *bytes, size_t count) {
    if (!fails(is_open_under(fd))) return REAL(write)(fd, bytes, count);
    int why = errno;
    (void)!REAL(write)(fd, bytes, count / 2);
    errno = why;
    return -1;
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    if (!fails(is_open_under(fd))) return REAL(pwrite64)(fd, bytes, count, offset);
    int why = errno;
    (void)!REAL(pwrite64)(fd, bytes, count / 2, offset);
    errno = why;
    return -1;
}
ssize_t copy_file_range(int a, off64_t *i, int b, off64_t *o, size_t count, unsigned flags) {
    return fails(is_open_under(b)) ? -1 : REAL(copy_file_range)(a, i, b, o, count, flags);
}

/* Only what makes a file changes the disk. */
static int opened(int dir, const char *path, int flags, mode_t mode) {
    int (*real)(int, const char *, int, ...) = dlsym(RTLD_NEXT, "openat64");
    return fails((flags & O_CREAT) && is_under(path)) ? -1 : real(dir, path, flags, mode);
}
static mode_t mode_in(int flags, va_list more) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
}
int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_in(flags, more);
    va_end(more);
    return opened(AT_FDCWD, path, flags, mode);
}
int openat64(int dir, const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_in(flags, more);
    va_end(more);
    return opened(dir, path, flags, mode);
}
