#include "thinwire/cli/signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "thinwire/base/error.hpp"

namespace thinwire::cli {
namespace {

bool ignored(int signal_number) {
  struct sigaction action {};
  sigaction(signal_number, nullptr, &action);
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SignalScope::SignalScope() {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;  // an ignored SIGCHLD would reap the ranks before we could ask for their status
  sigaction(SIGCHLD, &by_default, &child_before_);
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  for (int signal_number : {SIGINT, SIGTERM, SIGHUP})
    if (!ignored(signal_number)) sigaddset(&wanted, signal_number);
  pthread_sigmask(SIG_BLOCK, &wanted, &before_);
  fd_ = FileDescriptor(signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  if (fd_.valid()) return;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  fail(ErrorCode::kUnavailable, {"cli::SignalScope", "signalfd", std::strerror(errno), "", ""});
}

SignalScope::~SignalScope() {
  arrived();
  sigaction(SIGCHLD, &child_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::vector<int> SignalScope::arrived() {
  std::vector<int> signals;
  signalfd_siginfo info{};
  while (read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    signals.push_back(static_cast<int>(info.ssi_signo));
  return signals;
}

}  // namespace thinwire::cli
