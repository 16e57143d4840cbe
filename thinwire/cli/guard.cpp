#include "thinwire/cli/guard.hpp"

#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace thinwire::cli {
namespace {

constexpr pid_t kDismiss = -1;
constexpr int kMaxGroups = 16'384;

// Runs in the forked child: only async-signal-safe calls, no allocation.
[[noreturn]] void guard_main(int line, const char* const* namespace_files, pid_t* groups) {
  setsid();
  prctl(PR_SET_NAME, "thinwire-guard");
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) signal(number, SIG_IGN);
  int count = 0;
  for (;;) {
    pid_t message = 0;
    const ssize_t got = read(line, &message, sizeof message);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof message)) break;
    if (message == kDismiss) _exit(0);
    if (count < kMaxGroups) groups[count++] = message;
  }
  for (int i = 0; i < count; ++i) kill(-groups[i], SIGKILL);
  for (const char* const* file = namespace_files; *file != nullptr; ++file) {
    umount2(*file, MNT_DETACH);
    unlink(*file);
  }
  _exit(0);
}

}  // namespace

Guard::Guard(const std::vector<std::string>& network_namespaces) {
  std::vector<std::string> files;
  for (const std::string& name : network_namespaces) files.push_back("/run/netns/" + name);
  std::vector<const char*> pointers;
  for (const std::string& file : files) pointers.push_back(file.c_str());
  pointers.push_back(nullptr);
  std::vector<pid_t> groups(kMaxGroups);
  Pipe pipe = make_pipe();
  pid_ = fork();
  if (pid_ == 0) {
    close(pipe.write_end.get());
    guard_main(pipe.read_end.get(), pointers.data(), groups.data());
  }
  line_ = std::move(pipe.write_end);
}

Guard::~Guard() {
  if (pid_ <= 0) return;
  watch(kDismiss);
  line_.close();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guard::watch(pid_t process_group) noexcept {
  if (pid_ <= 0) return;
  [[maybe_unused]] const ssize_t written = write(line_.get(), &process_group, sizeof process_group);
}

}  // namespace thinwire::cli
