// Blocks signals while threads are started, so that the program's signals arrive in its main
// thread.
#ifndef TOOLS_BASE_SIGNALS_BLOCKED_H_
#define TOOLS_BASE_SIGNALS_BLOCKED_H_

#include <pthread.h>
#include <signal.h>

namespace base {

// Blocks all signals of the calling thread while the object exists. A thread that is started in
// that time inherits the block, so it receives no signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace base

#endif  // TOOLS_BASE_SIGNALS_BLOCKED_H_
