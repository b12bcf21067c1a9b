#include "tools/nettrace/ship/curl_library.h"

#include <dlfcn.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/base/shared_library.h"

namespace tools::ship {
absl::StatusOr<CurlLibrary> CurlLibrary::Load() {
  std::string error;
  void* library = nullptr;
  // libcurl-gnutls.so.4 is Debian's build with GnuTLS.
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
  const bool found = base::FindFunction(library, "curl_global_init", &curl.global_init) &&
                     base::FindFunction(library, "curl_easy_init", &curl.easy_init) &&
                     base::FindFunction(library, "curl_easy_setopt", &curl.easy_setopt) &&
                     base::FindFunction(library, "curl_easy_perform", &curl.easy_perform) &&
                     base::FindFunction(library, "curl_easy_getinfo", &curl.easy_getinfo) &&
                     base::FindFunction(library, "curl_easy_cleanup", &curl.easy_cleanup) &&
                     base::FindFunction(library, "curl_easy_strerror", &curl.easy_strerror) &&
                     base::FindFunction(library, "curl_slist_append", &curl.slist_append) &&
                     base::FindFunction(library, "curl_slist_free_all", &curl.slist_free_all);
  if (!found || curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return absl::UnavailableError("libcurl does not start; reinstall the package libcurl4");
  }
  return curl;
}

}  // namespace tools::ship
