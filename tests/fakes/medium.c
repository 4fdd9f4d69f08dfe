/* LD_PRELOAD: a medium with bad manners, for every file below $MEDIUM.
 *
 *   SHORT=1       reads and writes do at most 1000 bytes at a time, and odd numbers of them
 *   FAT=1         no O_DIRECT, no chmod, no links, no fallocate, no sync of folders, no names that
 *                 FAT forbids; files up to $FAT_LIMIT bytes (FAT32 has 4 GiB - 1)
 *   READ_ONLY=1   EROFS for whatever would change it
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int on(const char *name) { return getenv(name) != NULL; }

static int below(const char *path) {
    const char *root = getenv("MEDIUM");
    return root && path && strncmp(path, root, strlen(root)) == 0;
}

static int mine(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = REAL(readlink)(link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return below(path);
}

static size_t part(int fd, size_t n) {
    return on("SHORT") && n > 1 && mine(fd) ? (n > 1000 ? 997 : n / 2) : n;
}

static int refuse(int error) { errno = error; return -1; }

static int name_is_bad(const char *path) {
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    size_t n = strlen(name);
    return strpbrk(name, "<>:\"|?*\\") || (n && (name[n - 1] == '.' || name[n - 1] == ' '));
}

static int opening(const char *path, int flags) {
    if (!below(path)) return 0;
    int writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT);
    if (on("READ_ONLY") && writes) return EROFS;
    if (on("FAT") && (flags & O_DIRECT)) return EINVAL;
    if (on("FAT") && (flags & O_CREAT) && name_is_bad(path)) return EINVAL;
    return 0;
}

#define OPEN(name)                                                        \
    int name(const char *path, int flags, ...) {                          \
        va_list more; va_start(more, flags);                              \
        mode_t mode = va_arg(more, mode_t); va_end(more);                 \
        int error = opening(path, flags);                                 \
        return error ? refuse(error) : REAL(name)(path, flags, mode);     \
    }
OPEN(open)
OPEN(open64)

ssize_t read(int fd, void *to, size_t n) { return REAL(read)(fd, to, part(fd, n)); }
ssize_t pread64(int fd, void *to, size_t n, off64_t at) { return REAL(pread64)(fd, to, part(fd, n), at); }
ssize_t pread(int fd, void *to, size_t n, off_t at) { return REAL(pread)(fd, to, part(fd, n), at); }

static ssize_t preadv_once(int fd, const struct iovec *v, int n, off_t at) {
    if (n < 1) return 0;
    return REAL(pread)(fd, v[0].iov_base, part(fd, v[0].iov_len), at);
}
ssize_t preadv(int fd, const struct iovec *v, int n, off_t at) {
    return on("SHORT") && mine(fd) ? preadv_once(fd, v, n, at) : REAL(preadv)(fd, v, n, at);
}
ssize_t preadv64(int fd, const struct iovec *v, int n, off64_t at) { return preadv(fd, v, n, at); }
ssize_t preadv2(int fd, const struct iovec *v, int n, off_t at, int flags) {
    return on("SHORT") && mine(fd) ? preadv_once(fd, v, n, at) : REAL(preadv2)(fd, v, n, at, flags);
}
ssize_t preadv64v2(int fd, const struct iovec *v, int n, off64_t at, int flags) {
    return preadv2(fd, v, n, at, flags);
}

static size_t room(int fd, size_t n, off_t at) {
    const char *limit = getenv("FAT_LIMIT");
    if (!on("FAT") || !limit || !mine(fd)) return n;
    long long left = atoll(limit) - (long long)at;
    return left <= 0 ? 0 : (long long)n > left ? (size_t)left : n;
}

ssize_t write(int fd, const void *from, size_t n) {
    size_t fits = n ? room(fd, n, lseek(fd, 0, SEEK_CUR)) : 0;
    return n && !fits ? refuse(EFBIG) : REAL(write)(fd, from, part(fd, fits));
}
ssize_t pwrite(int fd, const void *from, size_t n, off_t at) {
    size_t fits = room(fd, n, at);
    return n && !fits ? refuse(EFBIG) : REAL(pwrite)(fd, from, part(fd, fits), at);
}
ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at) { return pwrite(fd, from, n, at); }

int fsync(int fd) {
    struct stat s;
    if (on("FAT") && mine(fd) && fstat(fd, &s) == 0 && S_ISDIR(s.st_mode)) return refuse(EINVAL);
    return REAL(fsync)(fd);
}
int posix_fallocate(int fd, off_t at, off_t n) {
    return on("FAT") && mine(fd) ? EOPNOTSUPP : REAL(posix_fallocate)(fd, at, n);
}
int posix_fallocate64(int fd, off64_t at, off64_t n) { return posix_fallocate(fd, at, n); }
int fchmod(int fd, mode_t mode) { return on("FAT") && mine(fd) ? refuse(EPERM) : REAL(fchmod)(fd, mode); }
int chmod(const char *path, mode_t mode) {
    if (below(path) && on("READ_ONLY")) return refuse(EROFS);
    return on("FAT") && below(path) ? refuse(EPERM) : REAL(chmod)(path, mode);
}
int link(const char *from, const char *to) { return on("FAT") && below(to) ? refuse(EPERM) : REAL(link)(from, to); }
int symlink(const char *from, const char *to) {
    return on("FAT") && below(to) ? refuse(EPERM) : REAL(symlink)(from, to);
}
int mkdir(const char *path, mode_t mode) {
    return on("READ_ONLY") && below(path) ? refuse(EROFS) : REAL(mkdir)(path, mode);
}
int unlink(const char *path) { return on("READ_ONLY") && below(path) ? refuse(EROFS) : REAL(unlink)(path); }
int rename(const char *from, const char *to) {
    if (on("READ_ONLY") && (below(from) || below(to))) return refuse(EROFS);
    if (on("FAT") && below(to) && name_is_bad(to)) return refuse(EINVAL);
    return REAL(rename)(from, to);
}
