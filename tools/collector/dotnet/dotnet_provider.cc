#include "tools/collector/dotnet/dotnet_provider.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/base/status_macros.h"
#include "tools/base/values.h"

namespace collector {
namespace {

constexpr char kForm[] = "PROVIDER[:level[:keywords]], such as MyCompany-Shop:info:0x3";
// Maximum number of providers, and of characters in the name of a provider. These limits keep
// a request to the runtime, in which names are UTF-16, within its limit of 65535 bytes.
constexpr std::size_t kMaxProviders = 32;
constexpr std::size_t kMaxName = 255;
constexpr std::uint8_t kVerbose = 5;
// Usual events of the runtime: garbage collections, the loader and the compiler, exceptions, the
// thread pool and threads.
constexpr std::uint8_t kRuntimeLevel = 4;
constexpr std::uint64_t kRuntimeKeywords = 0x100003801D;

struct Profile {
  const char* name;
  std::vector<DotnetProvider> providers;
};

// The table in nettrace-record(1) describes the profiles.
const std::vector<Profile>& Profiles() {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  constexpr std::uint64_t kGc = 0x1;
  constexpr std::uint64_t kContention = 0x4000;
  constexpr std::uint64_t kExceptions = 0x8000;
  static const auto* const profiles = new std::vector<Profile>{
      {"common", {{kDotnetRuntimeProvider, kRuntimeLevel, kRuntimeKeywords, ""}}},
      {"contention", {{kDotnetRuntimeProvider, kRuntimeLevel, kContention, ""}}},
      {"exceptions", {{kDotnetRuntimeProvider, kRuntimeLevel, kExceptions, ""}}},
      {"gc", {{kDotnetRuntimeProvider, kRuntimeLevel, kGc, ""}}},
      {"http",
       {{"System.Net.Http", kRuntimeLevel, kAll, ""},
        {"System.Net.NameResolution", kRuntimeLevel, kAll, ""},
        {"System.Net.Security", kRuntimeLevel, kAll, ""},
        {"System.Net.Sockets", kRuntimeLevel, kAll, ""},
        {"Microsoft.AspNetCore.Hosting", kRuntimeLevel, kAll, ""},
        {"Microsoft-AspNetCore-Server-Kestrel", kRuntimeLevel, kAll, ""}}}};
  return *profiles;
}

// Returns the providers of the profile with this name; an empty list if there is no such profile.
std::span<const DotnetProvider> FindProfile(absl::string_view name) {
  for (const Profile& profile : Profiles()) {
    if (name == profile.name) return profile.providers;
  }
  return {};
}

std::optional<std::uint64_t> ParseMask(absl::string_view text) {
  if (text == "*") return ~std::uint64_t{0};
  std::uint64_t mask = 0;
  const bool is_hex = absl::StartsWith(text, "0x") || absl::StartsWith(text, "0X");
  if (is_hex ? !absl::SimpleHexAtoi(text, &mask) : !absl::SimpleAtoi(text, &mask)) {
    return std::nullopt;
  }
  return mask;
}

absl::StatusOr<DotnetProvider> ParseProvider(absl::string_view text) {
  const auto fail = [text](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': ", why, "; use ", kForm));
  };
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  DotnetProvider provider;
  provider.name = std::string(parts[0]);
  if (provider.name.empty() || provider.name.size() > kMaxName ||
      !std::all_of(provider.name.begin(), provider.name.end(),
                   [](unsigned char c) { return absl::ascii_isgraph(c); })) {
    return fail("the name of the provider is not 1 to 255 visible characters of ASCII");
  }
  if (parts.size() > 3) return fail("there are too many colons");
  if (parts.size() == 1 && provider.name == kDotnetRuntimeProvider) {
    provider.max_level = kRuntimeLevel;
    provider.keywords = kRuntimeKeywords;
  }
  if (parts.size() > 1) {
    ASSIGN_OR_RETURN(const std::uint8_t level,
                     base::ParseLevel(std::string_view(parts[1].data(), parts[1].size())));
    provider.max_level = std::min(level, kVerbose);
  }
  if (parts.size() > 2) {
    const std::optional<std::uint64_t> mask = ParseMask(parts[2]);
    if (!mask) return fail("the keywords are neither a number nor *");
    provider.keywords = *mask;
  }
  return provider;
}

}  // namespace

absl::StatusOr<std::vector<DotnetProvider>> ParseDotnetProviders(std::string_view text) {
  if (text.empty()) text = kDotnetRuntimeProvider;
  std::vector<DotnetProvider> providers;
  const auto find = [&providers](const std::string& name) {
    return std::find_if(providers.begin(), providers.end(), [&name](const DotnetProvider& other) {
      return absl::EqualsIgnoreCase(other.name, name);
    });
  };
  std::vector<DotnetProvider> of_profiles;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    if (const std::span<const DotnetProvider> profile = FindProfile(part); !profile.empty()) {
      of_profiles.insert(of_profiles.end(), profile.begin(), profile.end());
      continue;
    }
    ASSIGN_OR_RETURN(DotnetProvider provider, ParseProvider(part));
    if (find(provider.name) != providers.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "': the provider is named twice; name it once"));
    }
    providers.push_back(std::move(provider));
    if (providers.size() > kMaxProviders) break;
  }
  for (const DotnetProvider& provider : of_profiles) {
    const auto known = find(provider.name);
    if (known == providers.end()) {
      providers.push_back(provider);
    } else {
      known->max_level = std::max(known->max_level, provider.max_level);
      known->keywords |= provider.keywords;
    }
  }
  if (providers.size() > kMaxProviders) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMaxProviders, " providers; use fewer"));
  }
  return providers;
}

absl::StatusOr<std::size_t> RegisterDotnetProviders(const std::string& prefix,
                                                    UserEventRegistrations* registrations,
                                                    std::vector<DotnetProvider>* providers) {
  constexpr char kTasks[] = "System.Threading.Tasks.TplEventSource";
  constexpr std::uint64_t kFlowActivityIds = 0x80;
  const std::size_t count = providers->size();
  const auto is = [](absl::string_view name) {
    return [name](const DotnetProvider& provider) {
      return absl::EqualsIgnoreCase(provider.name, name);
    };
  };
  if (!std::all_of(providers->begin(), providers->end(), is(kDotnetRuntimeProvider)) &&
      std::none_of(providers->begin(), providers->end(), is(kTasks))) {
    providers->push_back({kTasks, kVerbose, kFlowActivityIds, ""});
  }
  for (std::size_t i = 0; i < providers->size(); ++i) {
    DotnetProvider& provider = (*providers)[i];
    provider.tracepoint = absl::StrCat(prefix, "_", i);
    RETURN_IF_ERROR(
        registrations->Register({provider.tracepoint, kDotnetFields}, /*persistent=*/false));
  }
  return count;
}

}  // namespace collector
