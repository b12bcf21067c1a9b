// What the provider's parts share inside the library.
#ifndef LIBEVENTHEADER_PROVIDER_REGISTRY_H_
#define LIBEVENTHEADER_PROVIDER_REGISTRY_H_

namespace eh::internal {

// In the child after a fork: a daemon closes descriptors next.
void CheckUserEventsBeforeNextWrite() noexcept;
// When the shared object that holds the library is unloaded.
void CloseUserEvents() noexcept;

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_REGISTRY_H_
