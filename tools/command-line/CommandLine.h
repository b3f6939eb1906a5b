//===- CommandLine.h - options and commands of our tools ------------------===//
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace ds::tool {

/// Wrong usage: exit code 2.
class UsageError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// What an option must be; each rule returns the option again.
class Option {
public:
  explicit Option(CLI::Option *option) : option_(option) {}

  Option &required();
  Option &hidden(); ///< from --help
  Option &oneOf(const std::vector<std::string> &words);
  Option &between(int first, int last);
  Option &between(double first, double last);
  Option &positive();
  Option &delimitedBy(char delimiter);
  Option &excludes(const Option &other);

private:
  CLI::Option *option_;
};

/// The options of a program or of one of its commands.
class Command {
public:
  explicit Command(CLI::App *app) : app_(app) {}

  /// `names` as in "-o,--output"; a name without dashes is a positional argument. T: std::string, int, int64_t,
  /// uint64_t, double, or a vector of strings or of int64_t (several words). `value` is written by CommandLine::parse.
  template <typename T> Option addOption(const std::string &names, T &value, const std::string &help = "");
  Option addFlag(const std::string &name, bool &value, const std::string &help = "");
  /// `run` is called at the end of CommandLine::parse where the command was given.
  Command addCommand(const std::string &name, const std::string &help, const std::function<void()> &run = {});
  /// A command that takes whatever follows and is no part of --help.
  void addHiddenCommand(const std::string &name);

  bool hasOption(const std::string &name) const;  ///< whether it was given
  bool hasCommand(const std::string &name) const; ///< likewise
  bool hasCommand() const;                        ///< any
  /// As --help prints it, of the command that was given.
  std::string help() const;

protected:
  CLI::App *app_;
};

/// A program's command line. CLI11 stands behind it: its templates take 8 s to compile in a file that names them, so
/// only CommandLine.cpp does.
class CommandLine : public Command {
public:
  explicit CommandLine(const std::string &description, const std::string &name = "");
  ~CommandLine();

  void setFooter(const std::string &text);
  void setVersion(const std::string &flag, const std::string &text);
  /// Options of the program may also stand behind a command.
  void acceptOptionsAnywhere();

  /// Writes options and runs the command; throws UsageError. Returns what is to be printed instead where --help or
  /// --version was given.
  std::optional<std::string> parse(int argc, char **argv);

private:
  std::unique_ptr<CLI::App> owned_;
};

} // namespace ds::tool
