// The providers of .NET that a recording enables: the values of `nettrace record --dotnet`.
#ifndef TOOLS_COLLECTOR_DOTNET_DOTNET_PROVIDER_H_
#define TOOLS_COLLECTOR_DOTNET_DOTNET_PROVIDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/collector/tracefs/user_event_registrations.h"

namespace collector {

// The provider of the runtime's own events, such as those of the garbage collector.
inline constexpr char kDotnetRuntimeProvider[] = "Microsoft-Windows-DotNETRuntime";

// The fields of a tracepoint for .NET. The runtime registers the tracepoint with the same text.
inline constexpr char kDotnetFields[] =
    "u8 version; u16 event_id; __rel_loc u8[] extension; __rel_loc u8[] payload";

// A provider of the runtime or an EventSource.
struct DotnetProvider {
  std::string name;
  std::uint8_t max_level = 5;  // maximum level of the events, 1 to 5
  std::uint64_t keywords = ~std::uint64_t{0};
  std::string tracepoint;  // tracepoint that its events are written to

  friend bool operator==(const DotnetProvider&, const DotnetProvider&) = default;
};

// Parses `PROVIDER[:level[:keywords]],...`. base::ParseLevel parses the level. Keywords are a mask,
// decimal or 0x hexadecimal; `*` means all keywords. Without a level, all events are enabled. The
// runtime's own provider is an exception: without a level, its usual events are enabled, because
// all its events slow a program down. "" stands for this provider. The result has no names of
// tracepoints. The message of InvalidArgument says what is wrong and shows the accepted form.
//
// A part may also be the name of a profile: common, contention, exceptions, gc or http. A provider
// with the name of a profile needs a level. If a provider occurs in several profiles, or in a
// profile and by its name, its highest level and all of its keywords are enabled.
absl::StatusOr<std::vector<DotnetProvider>> ParseDotnetProviders(std::string_view text);

// Names a tracepoint for each provider and registers it. If EventSources are among the providers,
// also appends the provider of .NET's tasks: without its keyword, events have no activity ids. The
// events of the appended provider need not be recorded. Returns the number of providers without it.
// `prefix` must differ for all recordings of the machine. Fails as UserEventRegistrations::Register
// does.
absl::StatusOr<std::size_t> RegisterDotnetProviders(const std::string& prefix,
                                                    UserEventRegistrations* registrations,
                                                    std::vector<DotnetProvider>* providers);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_DOTNET_DOTNET_PROVIDER_H_
