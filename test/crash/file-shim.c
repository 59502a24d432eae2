// Preloaded into a process by file-shim.ts. Writes every change of a file below SHIM_ROOT to SHIM_LOG, in order and with its content
// (operation-log.ts reads it). Can make operations fail, and can kill the process before an operation.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MARKER "/shim-marker/"
#define SHORT_WRITE -1

struct record {
  uint32_t type, path_length, data_length, error;
  uint64_t inode;
  int64_t offset, length;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *root;
static size_t root_length;
static int log_fd = -1, fail_error;
static long fail_at, kill_after, operations;

static int parse_error(const char *name) {
  if (!name) return 0;
  if (!strcmp(name, "ENOSPC")) return ENOSPC;
  if (!strcmp(name, "EDQUOT")) return EDQUOT;
  return strcmp(name, "SHORT") ? EIO : SHORT_WRITE;
}

__attribute__((constructor)) static void start(void) {
  const char *log = getenv("SHIM_LOG"), *at = getenv("SHIM_FAIL_AT");
  root = getenv("SHIM_ROOT");
  root_length = root ? strlen(root) : 0;
  fail_at = at ? atol(at) : 0;
  fail_error = parse_error(getenv("SHIM_FAIL_ERROR"));
  if (log) log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int is_below_root(const char *path) {
  return log_fd >= 0 && root && !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

static int path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return 1;
}

static int resolve(int directory, const char *path, char *out) {
  if (path[0] == '/') return snprintf(out, PATH_MAX, "%s", path) < PATH_MAX;
  char base[PATH_MAX];
  if (directory == AT_FDCWD ? !getcwd(base, sizeof base) : !path_of(directory, base)) return 0;
  return snprintf(out, PATH_MAX, "%s/%s", base, path) < PATH_MAX;
}

static int is_recorded(int directory, const char *path, char *out) {
  return log_fd >= 0 && resolve(directory, path, out) && is_below_root(out);
}

// Sockets and pipes are the most frequent, so they are excluded first.
static int is_recorded_fd(int fd, struct stat *status, char *path) {
  if (log_fd < 0 || fstat(fd, status) || !(S_ISREG(status->st_mode) || S_ISDIR(status->st_mode))) return 0;
  return path_of(fd, path) && is_below_root(path);
}

// Processes that share a log take turns, so that the log has the order of the operations.
static void lock(void) {
  pthread_mutex_lock(&mutex);
  while (syscall(SYS_flock, log_fd, LOCK_EX) && errno == EINTR);
}

static void unlock(void) {
  int error = errno;
  syscall(SYS_flock, log_fd, LOCK_UN);
  pthread_mutex_unlock(&mutex);
  errno = error;
}

static void append(char type, struct stat *status, const char *path, const void *data, size_t size, int64_t offset,
                   int64_t length, int failure) {
  int error = errno;
  struct record record = {type, strlen(path), size, failure, status ? status->st_ino : 0, offset, length};
  struct iovec parts[] = {{&record, sizeof record}, {(void *)path, record.path_length}, {(void *)data, size}};
  size_t total = sizeof record + record.path_length + size;
  if (syscall(SYS_writev, log_fd, parts, 3) != (ssize_t)total) abort();
  errno = error;
}

// Takes the lock. Returns 0, or the error with which this operation must fail.
static int enter(char type, const char *path) {
  lock();
  if (kill_after > 0 && --kill_after == 0) kill(getpid(), SIGKILL), pause();
  if (++operations != fail_at || (fail_error == SHORT_WRITE && type != 'w')) return 0;
  append(type, 0, path, 0, 0, 0, 0, fail_error == SHORT_WRITE ? EAGAIN : fail_error);
  return fail_error;
}

#define FAIL(error) return unlock(), errno = (error), -1

static int open_file(int directory, const char *name, int flags, mode_t mode) {
  char path[PATH_MAX];
  if (!(flags & (O_CREAT | O_TRUNC)) || !is_recorded(directory, name, path))
    return syscall(SYS_openat, directory, name, flags, mode);
  struct stat status;
  int existed = !fstatat(AT_FDCWD, path, &status, 0);
  int creates = !existed && (flags & O_CREAT);
  int truncates = existed && (flags & O_TRUNC) && status.st_size > 0;
  if (!creates && !truncates) return syscall(SYS_openat, directory, name, flags, mode);
  int failure = enter(creates ? 'c' : 't', path);
  if (failure) FAIL(failure);
  int fd = syscall(SYS_openat, directory, name, flags, mode);
  if (fd >= 0 && !fstat(fd, &status)) append(creates ? 'c' : 't', &status, path, 0, 0, 0, 0, 0);
  unlock();
  return fd;
}

#define OPEN_MODE(flags) mode_t mode = 0; \
  if ((flags) & (O_CREAT | O_TMPFILE)) { va_list list; va_start(list, flags); mode = va_arg(list, mode_t); va_end(list); }
int open(const char *path, int flags, ...) { OPEN_MODE(flags) return open_file(AT_FDCWD, path, flags, mode); }
int openat(int directory, const char *path, int flags, ...) { OPEN_MODE(flags) return open_file(directory, path, flags, mode); }
int creat(const char *path, mode_t mode) { return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int directory, const char *path, int flags, ...) __attribute__((alias("openat")));

static ssize_t write_system(int fd, const struct iovec *parts, int count, off_t offset) {
  return offset < 0 ? syscall(SYS_writev, fd, parts, count) : syscall(SYS_pwritev, fd, parts, count, offset, 0);
}

// A negative offset means the position of the descriptor.
static ssize_t write_parts(int fd, const struct iovec *parts, int count, off_t offset) {
  struct stat status;
  char path[PATH_MAX];
  if (!is_recorded_fd(fd, &status, path)) return write_system(fd, parts, count, offset);
  int failure = enter('w', path);
  if (failure > 0) FAIL(failure);
  fstat(fd, &status);
  size_t size = 0, filled = 0;
  for (int i = 0; i < count; i++) size += parts[i].iov_len;
  char *data = malloc(size + 1);
  for (int i = 0; i < count; filled += parts[i++].iov_len) memcpy(data + filled, parts[i].iov_base, parts[i].iov_len);
  off_t start = offset;
  if (fcntl(fd, F_GETFL) & O_APPEND) start = status.st_size;
  else if (offset < 0) start = lseek(fd, 0, SEEK_CUR);
  struct iovec all = {data, failure ? (size + 1) / 2 : size};
  ssize_t written = write_system(fd, &all, 1, offset);
  if (written > 0) append('w', &status, path, data, written, start, 0, 0);
  free(data);
  unlock();
  return written;
}

ssize_t write(int fd, const void *data, size_t size) {
  return write_parts(fd, &(struct iovec){(void *)data, size}, 1, -1);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  return write_parts(fd, &(struct iovec){(void *)data, size}, 1, offset);
}
ssize_t writev(int fd, const struct iovec *parts, int count) { return write_parts(fd, parts, count, -1); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) { return write_parts(fd, parts, count, offset); }
ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset) __attribute__((alias("pwrite")));
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t offset) __attribute__((alias("pwritev")));

int ftruncate(int fd, off_t size) {
  struct stat status;
  char path[PATH_MAX];
  if (!is_recorded_fd(fd, &status, path)) return syscall(SYS_ftruncate, fd, size);
  int failure = enter('t', path);
  if (failure) FAIL(failure);
  int result = syscall(SYS_ftruncate, fd, size);
  if (!result) append('t', &status, path, 0, 0, size, 0, 0);
  unlock();
  return result;
}
int ftruncate64(int fd, off_t size) __attribute__((alias("ftruncate")));

int fallocate(int fd, int mode, off_t offset, off_t length) {
  struct stat status;
  char path[PATH_MAX];
  if (!is_recorded_fd(fd, &status, path)) return syscall(SYS_fallocate, fd, mode, offset, length);
  int failure = enter('f', path);
  if (failure) FAIL(failure);
  int result = syscall(SYS_fallocate, fd, mode, offset, length);
  if (!result) append('f', &status, path, &mode, sizeof mode, offset, length, 0);
  unlock();
  return result;
}
int fallocate64(int fd, int mode, off_t offset, off_t length) __attribute__((alias("fallocate")));

static int sync_file(int fd, long call) {
  struct stat status;
  char path[PATH_MAX];
  if (!is_recorded_fd(fd, &status, path)) return syscall(call, fd);
  char type = S_ISDIR(status.st_mode) ? 'd' : 's';
  int failure = enter(type, path);
  if (failure) FAIL(failure);
  int result = syscall(call, fd);
  if (!result) append(type, &status, path, 0, 0, 0, 0, 0);
  unlock();
  return result;
}
int fsync(int fd) { return sync_file(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_file(fd, SYS_fdatasync); }

// A rename or a link: the record has the first path as path and the second as data.
static int move(char type, int from_directory, const char *from, int to_directory, const char *to, int flags) {
  char first[PATH_MAX], second[PATH_MAX];
  long call = type == 'r' ? SYS_renameat2 : SYS_linkat;
  if (!is_recorded(from_directory, from, first) || !resolve(to_directory, to, second))
    return syscall(call, from_directory, from, to_directory, to, flags);
  int failure = enter(type, first);
  if (failure) FAIL(failure);
  int result = syscall(call, from_directory, from, to_directory, to, flags);
  if (!result) append(type, 0, first, second, strlen(second), 0, 0, 0);
  unlock();
  return result;
}
int rename(const char *from, const char *to) { return move('r', AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int a, const char *from, int b, const char *to) { return move('r', a, from, b, to, 0); }
int link(const char *from, const char *to) { return move('l', AT_FDCWD, from, AT_FDCWD, to, 0); }

static int remove_entry(int directory, const char *name, int flags) {
  char path[PATH_MAX];
  struct stat status;
  if (!is_recorded(directory, name, path) || fstatat(AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW))
    return syscall(SYS_unlinkat, directory, name, flags);
  char type = flags & AT_REMOVEDIR ? 'x' : 'u';
  int failure = enter(type, path);
  if (failure) FAIL(failure);
  int result = syscall(SYS_unlinkat, directory, name, flags);
  if (!result) append(type, &status, path, 0, 0, 0, 0, 0);
  unlock();
  return result;
}
int unlinkat(int directory, const char *path, int flags) { return remove_entry(directory, path, flags); }
int unlink(const char *path) { return remove_entry(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return remove_entry(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
  struct stat status;
  int is_directory = !fstatat(AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) && S_ISDIR(status.st_mode);
  return remove_entry(AT_FDCWD, path, is_directory ? AT_REMOVEDIR : 0);
}

int mkdirat(int directory, const char *name, mode_t mode) {
  char path[PATH_MAX];
  if (!is_recorded(directory, name, path)) return syscall(SYS_mkdirat, directory, name, mode);
  int failure = enter('m', path);
  if (failure) FAIL(failure);
  int result = syscall(SYS_mkdirat, directory, name, mode);
  if (!result) append('m', 0, path, 0, 0, 0, 0, 0);
  unlock();
  return result;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

// A test writes a marker into the log with fs.accessSync('/shim-marker/TEXT'). "kill N" kills the process before its N-th operation
// from now on, with no operation half recorded.
int access(const char *path, int mode) {
  if (log_fd < 0 || strncmp(path, MARKER, strlen(MARKER))) return syscall(SYS_faccessat, AT_FDCWD, path, mode);
  const char *text = path + strlen(MARKER);
  lock();
  if (!strncmp(text, "kill ", 5)) kill_after = atol(text + 5);
  else append('#', 0, text, 0, 0, 0, 0, 0);
  unlock();
  return 0;
}
