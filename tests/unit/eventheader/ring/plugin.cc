// A shared object with events, which the test loads and unloads.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "eventheader/eh.h"

namespace {

constinit eh::Provider plugin_provider("Ring_Plugin");
constexpr eh::Event<plugin_provider, "Called", eh::Traits{.keyword = 1}, eh::Field<"number", int>>
    called;
constexpr eh::Event<plugin_provider, "Texts", eh::Traits{.keyword = 1},
                    eh::Field<"thread", std::uint32_t>, eh::Field<"first", std::string_view>,
                    eh::Field<"number", std::uint64_t>, eh::Field<"second", std::string_view>>
    texts;
// The head (header, extension and metadata) is one byte longer than a multiple of EH_HEAD_STEP. The
// library copies whole steps, so it also copies the 31 bytes after the head.
constexpr eh::Event<plugin_provider, "AnEventWithoutFields", eh::Traits{.keyword = 1}> nothing;
static_assert((sizeof(eh::wire::Header) + sizeof(eh::wire::ExtensionHeader) +
               sizeof("AnEventWithoutFields")) %
                  EH_HEAD_STEP ==
              1);
constexpr eh::ActivityId kActivity = {std::byte{1}, std::byte{2}};

}  // namespace

// Returns 1 if the event was written, else 0.
extern "C" [[gnu::visibility("default")]] int WriteFromPlugin() {
  return called.Write(1) == eh::WriteResult::kWritten ? 1 : 0;
}

// Writes one event in which two fields have this text. Returns 1 if the event was written, else 0.
extern "C" [[gnu::visibility("default")]] int WriteTextsFromPlugin(std::uint32_t thread,
                                                                   std::uint64_t number,
                                                                   const char* text,
                                                                   std::size_t size,
                                                                   int has_activity) {
  const std::string_view view(text, size);
  const eh::WriteResult result =
      has_activity != 0 ? texts.Write(eh::Activity{kActivity}, thread, view, number, view)
                        : texts.Write(thread, view, number, view);
  return result == eh::WriteResult::kWritten ? 1 : 0;
}

extern "C" [[gnu::visibility("default")]] int WriteNothingFromPlugin() {
  return nothing.Write() == eh::WriteResult::kWritten ? 1 : 0;
}
