// Preloaded into the program by sync-shim.ts. Lists every fsync and fdatasync in a file, and makes those of one file fail or take
// longer.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int sync_file(const char *name, int fd) {
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  const char *list = getenv("SYNC_LIST"), *trigger = getenv("SYNC_FAIL_TRIGGER"), *target = getenv("SYNC_FAIL_PATH");
  const char *delay = getenv("SYNC_DELAY_MS");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 3);
  if (length < 0) return sync(fd);
  strcpy(path + length, "$"); // so that a target can contain the end of the path
  if (trigger && target && strstr(path, target) && access(trigger, F_OK) == 0) {
    errno = EIO;
    return -1;
  }
  if (delay) usleep(atoi(delay) * 1000);
  int result = sync(fd);
  int out = list ? open(list, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  if (out >= 0) {
    path[length] = '\n';
    if (write(out, path, length + 1) < 0) result = -1;
    close(out);
  }
  return result;
}

int fsync(int fd) { return sync_file("fsync", fd); }
int fdatasync(int fd) { return sync_file("fdatasync", fd); }
