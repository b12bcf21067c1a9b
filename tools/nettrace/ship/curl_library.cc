#include "tools/nettrace/ship/curl_library.h"

#include <dlfcn.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tools::ship {
namespace {

// Sets `*function` to the function with this name. Returns whether the library has it.
template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

absl::StatusOr<CurlLibrary> CurlLibrary::Load() {
  std::string error;
  void* library = nullptr;
  // The second one is Debian's build with GnuTLS.
  for (const char* const name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    const char* const reason = dlerror();
    if (error.empty() && reason != nullptr) error = reason;
  }
  if (library == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("libcurl cannot be loaded: ", error,
                     "; install the package libcurl4, which is libcurl4t64 from Debian 13 on"));
  }
  CurlLibrary curl;
  const bool found = Find(library, "curl_global_init", &curl.global_init) &&
                     Find(library, "curl_easy_init", &curl.easy_init) &&
                     Find(library, "curl_easy_setopt", &curl.easy_setopt) &&
                     Find(library, "curl_easy_perform", &curl.easy_perform) &&
                     Find(library, "curl_easy_getinfo", &curl.easy_getinfo) &&
                     Find(library, "curl_easy_cleanup", &curl.easy_cleanup) &&
                     Find(library, "curl_easy_strerror", &curl.easy_strerror) &&
                     Find(library, "curl_slist_append", &curl.slist_append) &&
                     Find(library, "curl_slist_free_all", &curl.slist_free_all);
  if (!found || curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return absl::UnavailableError("libcurl does not start; reinstall the package libcurl4");
  }
  return curl;
}

}  // namespace tools::ship
