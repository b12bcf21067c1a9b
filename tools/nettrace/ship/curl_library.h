// The functions of libcurl that `nettrace ship` and `nettrace export` call. The library is loaded
// only when it is needed. With the 30 libraries that it uses, it would triple the time in which
// every command of `nettrace` starts.
#ifndef TOOLS_NETTRACE_SHIP_CURL_LIBRARY_H_
#define TOOLS_NETTRACE_SHIP_CURL_LIBRARY_H_

#include <curl/curl.h>

#include "absl/status/statusor.h"

namespace tools::ship {

struct CurlLibrary {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_perform) easy_perform = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&curl_slist_append) slist_append = nullptr;
  decltype(&curl_slist_free_all) slist_free_all = nullptr;

  // Loads and initializes the library, which stays loaded. Must not be called while other threads
  // run. Fails with Unavailable if the library cannot be loaded or initialized; the message names
  // the package to install.
  static absl::StatusOr<CurlLibrary> Load();
};

}  // namespace tools::ship

#endif  // TOOLS_NETTRACE_SHIP_CURL_LIBRARY_H_
