#include "tools/collector/tracefs/tracefs_mount.h"

#include <stdbool.h>
#include <stddef.h>
#include <tracefs/tracefs.h>

const char* collector_tracefs_mount(void) {
  const char* path = NULL;
  return tracefs_tracing_dir_is_mounted(false, &path) == 1 ? path : NULL;
}
