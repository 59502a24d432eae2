// Preloaded into the program by sync-shim.ts. Makes fsync and fdatasync of one file fail or take longer.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int sync_file(const char *name, int fd) {
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  const char *trigger = getenv("SYNC_FAIL_TRIGGER"), *target = getenv("SYNC_FAIL_PATH");
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
  return sync(fd);
}

int fsync(int fd) { return sync_file("fsync", fd); }
int fdatasync(int fd) { return sync_file("fdatasync", fd); }
