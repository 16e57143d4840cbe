#include "thinwire/cli/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "thinwire/base/clock.hpp"
#include "thinwire/base/error.hpp"

namespace thinwire::cli {
namespace {

// Where the child stopped on its way to the program, sent to the parent with errno.
enum class Stage : int { kNamespace, kMount, kExec };

struct StartReport {
  Stage stage;
  int error_number;
};

// Everything the child needs, prepared before fork: after it only async-signal-safe calls are made.
struct ChildPlan {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int namespace_fd;
  int input, output, error, report;
  pid_t parent;
};

[[noreturn]] void report_and_exit(const ChildPlan& plan, Stage stage) {
  const StartReport report{stage, errno};
  [[maybe_unused]] const ssize_t written = write(plan.report, &report, sizeof report);
  _exit(127);
}

// /sys shows the network devices of the namespace in which it was mounted, so the child gets a /sys of its own.
void enter_namespace(const ChildPlan& plan) {
  if (plan.namespace_fd < 0) return;
  if (setns(plan.namespace_fd, CLONE_NEWNET) != 0) report_and_exit(plan, Stage::kNamespace);
  if (unshare(CLONE_NEWNS) != 0) report_and_exit(plan, Stage::kNamespace);
  if (mount("", "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0) report_and_exit(plan, Stage::kMount);
  umount2("/sys", MNT_DETACH);
  if (mount("thinwire", "/sys", "sysfs", 0, nullptr) != 0) report_and_exit(plan, Stage::kMount);
}

[[noreturn]] void run_child(const ChildPlan& plan) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(127);  // the parent died before the line above
  for (int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD}) signal(signal_number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(plan.input, STDIN_FILENO);
  dup2(plan.output, STDOUT_FILENO);
  dup2(plan.error, STDERR_FILENO);
  enter_namespace(plan);
  execve(plan.program, plan.arguments, plan.environment);
  report_and_exit(plan, Stage::kExec);
}

std::vector<char*> c_strings(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void cannot_start(const std::string& program, int error_number) {
  const std::string start = "cannot start " + program + ": ";
  if (error_number == ENOENT) throw Error(ErrorCode::kNotFound, start + "no such file");
  if (error_number == EACCES || error_number == ENOEXEC || error_number == EISDIR)
    throw Error(ErrorCode::kInvalidArgument, start + "not executable");
  throw Error(ErrorCode::kUnavailable, start + std::strerror(error_number));
}

// The file that a shell would run. Throws as start_process does.
std::string find_program(const std::string& program) {
  std::vector<std::string> candidates;
  if (program.find('/') != std::string::npos) {
    candidates.push_back(program);
  } else {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
    for (std::string folder; std::getline(folders, folder, ':');)
      candidates.push_back((folder.empty() ? "." : folder) + "/" + program);
  }
  int reason = ENOENT;
  for (const std::string& candidate : candidates) {
    struct stat status {};
    if (stat(candidate.c_str(), &status) != 0) continue;
    if (S_ISREG(status.st_mode) && access(candidate.c_str(), X_OK) == 0) return candidate;
    reason = EACCES;
  }
  cannot_start(program, reason);
}

FileDescriptor open_namespace(const std::string& name) {
  if (name.empty()) return FileDescriptor();
  FileDescriptor fd(open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid())
    fail(ErrorCode::kUnavailable, {"cli::start_process", "network namespace " + name, std::strerror(errno), "", ""});
  return fd;
}

void check_report(int report_fd, const std::string& program, pid_t child) {
  StartReport report{};
  ssize_t got = 0;
  do got = read(report_fd, &report, sizeof report);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof report)) return;  // closed by exec: the program runs
  waitpid(child, nullptr, 0);
  if (report.stage == Stage::kExec) cannot_start(program, report.error_number);
  const char* what = report.stage == Stage::kNamespace ? "enter its network namespace" : "mount its own /sys";
  throw Error(ErrorCode::kUnavailable,
              "cannot start " + program + ": cannot " + what + ": " + std::strerror(report.error_number));
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  DIR* directory = opendir("/proc");
  if (directory == nullptr) return found;
  while (const dirent* entry = readdir(directory)) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0) continue;
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');  // the name may hold spaces and brackets
    if (name_end == std::string::npos) continue;
    char state = 0;
    pid_t parent = 0;
    std::istringstream(line.substr(name_end + 1)) >> state >> parent;
    if (parent == getpid()) found.push_back(pid);
  }
  closedir(directory);
  return found;
}

}  // namespace

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    fail(ErrorCode::kUnavailable, {"cli::make_pipe", "pipe", std::strerror(errno), "", "raising ulimit -n"});
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

Process start_process(const ProcessSpec& spec) {
  const std::string program = find_program(spec.command.at(0));
  const std::vector<char*> arguments = c_strings(spec.command);
  const std::vector<char*> environment = c_strings(spec.environment);
  const FileDescriptor name_space = open_namespace(spec.network_namespace);
  Pipe input, output = make_pipe(), error = make_pipe(), report = make_pipe();
  if (spec.pipe_input)
    input = make_pipe();
  else
    input.read_end = FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const ChildPlan plan{program.c_str(),       arguments.data(),       environment.data(),
                       name_space.get(),      input.read_end.get(),   output.write_end.get(),
                       error.write_end.get(), report.write_end.get(), getpid()};
  const pid_t child = fork();
  if (child == 0) run_child(plan);
  if (child < 0) cannot_start(spec.command[0], errno);
  report.write_end.close();
  check_report(report.read_end.get(), spec.command[0], child);
  return {child, std::move(input.write_end), std::move(output.read_end), std::move(error.read_end)};
}

std::string signal_name(int signal_number) {
  const char* name = sigabbrev_np(signal_number);
  return name == nullptr ? "signal " + std::to_string(signal_number) : std::string("SIG") + name;
}

std::string describe_wait_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) return "killed by " + signal_name(WTERMSIG(wait_status));
  return "exit status " + std::to_string(WEXITSTATUS(wait_status));
}

int shell_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

ProcessScope::ProcessScope() {
  int was = 0;
  prctl(PR_GET_CHILD_SUBREAPER, &was);
  was_subreaper_ = was != 0;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (pid_t child : children()) before_.insert(child);
}

ProcessScope::~ProcessScope() {
  kill_leftovers();
  if (!was_subreaper_) prctl(PR_SET_CHILD_SUBREAPER, 0);
}

void ProcessScope::kill_leftovers() noexcept {
  const Deadline limit = Deadline::in_ms(5'000);
  while (!limit.passed()) {
    bool any = false;
    for (pid_t child : children()) {
      if (before_.count(child) != 0) continue;
      any = true;
      kill(child, SIGKILL);
      waitpid(child, nullptr, WNOHANG);
    }
    if (!any) return;
    usleep(2'000);
  }
}

}  // namespace thinwire::cli
