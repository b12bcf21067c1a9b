/* Finds where tracefs is mounted. It is C, because the header of libtracefs is not valid C++. */
#ifndef TOOLS_COLLECTOR_TRACEFS_TRACEFS_MOUNT_H_
#define TOOLS_COLLECTOR_TRACEFS_TRACEFS_MOUNT_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the mount point of tracefs, or NULL if it is not mounted. Mounts nothing. The text is
 * valid until the process ends. */
const char* collector_tracefs_mount(void);

#ifdef __cplusplus
}
#endif

#endif /* TOOLS_COLLECTOR_TRACEFS_TRACEFS_MOUNT_H_ */
