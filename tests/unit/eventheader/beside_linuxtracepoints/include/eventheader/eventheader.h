/* Stands in for the headers of LinuxTracepoints, from which services migrate step by step. This
 * path and the names below are those of LinuxTracepoints. Only names and kinds are the same; the
 * code does nothing. */
#ifndef _included_eventheader_h
#define _included_eventheader_h 1

#include <stddef.h>
#include <stdint.h>

/* eventheader/eventheader.h */
#define EVENTHEADER_LITTLE_ENDIAN 1
#define EVENTHEADER_COMMAND_TYPES "u8 eventheader_flags"
#define EVENTHEADER_FORMAT_TRACEPOINT_NAME(name, size, provider, level, keyword, options) \
  ((void)(name), (void)(size), (void)(provider), (void)(level), (void)(keyword), (void)(options), 0)
#define EVENTHEADER_FORMAT_COMMAND EVENTHEADER_FORMAT_TRACEPOINT_NAME
enum { EVENTHEADER_NAME_MAX = 256, EVENTHEADER_COMMAND_MAX = 512 };

typedef struct eventheader {
  uint8_t flags, version;
  uint16_t id, tag;
  uint8_t opcode, level;
} eventheader;
typedef struct eventheader_extension {
  uint16_t size, kind;
} eventheader_extension;
typedef enum eventheader_flags {
  eventheader_flag_none,
  eventheader_flag_default
} eventheader_flags;
typedef enum eventheader_extension_kind {
  eventheader_extension_kind_invalid
} eventheader_extension_kind;
typedef enum event_opcode { event_opcode_info } event_opcode;
typedef enum event_level { event_level_invalid, event_level_error = 2 } event_level;
typedef enum event_field_encoding { event_field_encoding_invalid } event_field_encoding;
typedef enum event_field_format { event_field_format_default } event_field_format;

/* eventheader/eventheader-tracepoint.h */
#define _included_eventheader_tracepoint_h 1
enum { EVENTHEADER_PREFIX_DATAVEC_COUNT_NO_METADATA = 2, EVENTHEADER_PREFIX_DATAVEC_COUNT = 3 };
typedef struct eventheader_provider {
  const char *options, *name;
} eventheader_provider;
typedef struct eventheader_tracepoint {
  const eventheader_extension* metadata;
  eventheader header;
  uint64_t keyword;
} eventheader_tracepoint;
static inline int eventheader_open_provider(const eventheader_provider* provider) {
  return provider->name == NULL;
}
static inline void eventheader_close_provider(const eventheader_provider* provider) {
  (void)provider;
}
static inline int eventheader_write(const eventheader_tracepoint* event) {
  return event->header.level == event_level_invalid;
}

/* eventheader/TraceLoggingProvider.h */
#define _included_TraceLoggingProvider_h 1
#define TRACELOGGING_DEFINE_PROVIDER(symbol, name, id) \
  static const eventheader_provider symbol = {"", name}
#define TraceLoggingRegister(symbol) (eventheader_open_provider(&(symbol)))
#define TraceLoggingUnregister(symbol) (eventheader_close_provider(&(symbol)))
#define TraceLoggingLevel(level) (void)(level)
#define TraceLoggingKeyword(keyword) (void)(keyword)
#define TraceLoggingInt32(value, name) (void)(value), (void)(name)
#define TraceLoggingString(value, name) (void)(value), (void)(name)
#define TraceLoggingWrite(symbol, name, ...) ((void)&(symbol), (void)(name), __VA_ARGS__)

/* eventheader/EventHeaderDynamic.h */
#ifdef __cplusplus
#define _included_EventHeaderDynamic_h 1
namespace ehd {
class EventSet {};
class EventBuilder {};
class Provider {};
}  // namespace ehd
#endif

#endif /* _included_eventheader_h */
