//===- CommandLine.cpp - options and commands of our tools, by CLI11 ------===//
#include "tools/command-line/CommandLine.h"

#include <CLI/CLI.hpp>
#include <cstdint>

namespace ds::tool {

Option &Option::required() {
  option_->required();
  return *this;
}

Option &Option::hidden() {
  option_->group("");
  return *this;
}

Option &Option::oneOf(const std::vector<std::string> &words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Option &Option::between(int first, int last) {
  option_->check(CLI::Range(first, last));
  return *this;
}

Option &Option::between(double first, double last) {
  option_->check(CLI::Range(first, last));
  return *this;
}

Option &Option::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option &Option::delimitedBy(char delimiter) {
  option_->delimiter(delimiter);
  return *this;
}

Option &Option::excludes(const Option &other) {
  option_->excludes(other.option_);
  return *this;
}

template <typename T> Option Command::addOption(const std::string &names, T &value, const std::string &help) {
  return Option(app_->add_option(names, value, help));
}

template Option Command::addOption(const std::string &, std::string &, const std::string &);
template Option Command::addOption(const std::string &, int &, const std::string &);
template Option Command::addOption(const std::string &, int64_t &, const std::string &);
template Option Command::addOption(const std::string &, uint64_t &, const std::string &);
template Option Command::addOption(const std::string &, double &, const std::string &);
template Option Command::addOption(const std::string &, std::vector<std::string> &, const std::string &);
template Option Command::addOption(const std::string &, std::vector<int64_t> &, const std::string &);

Option Command::addFlag(const std::string &name, bool &value, const std::string &help) {
  return Option(app_->add_flag(name, value, help));
}

Command Command::addCommand(const std::string &name, const std::string &help, const std::function<void()> &run) {
  CLI::App *command = app_->add_subcommand(name, help);
  if (run)
    command->callback(run);
  return Command(command);
}

void Command::addHiddenCommand(const std::string &name) { app_->add_subcommand(name)->group("")->allow_extras(); }

bool Command::hasOption(const std::string &name) const { return app_->count(name) > 0; }
bool Command::hasCommand(const std::string &name) const { return app_->got_subcommand(name); }
bool Command::hasCommand() const { return !app_->get_subcommands().empty(); }
std::string Command::help() const { return app_->help(); }

CommandLine::CommandLine(const std::string &description, const std::string &name)
    : Command(nullptr), owned_(std::make_unique<CLI::App>(description, name)) {
  app_ = owned_.get();
}

CommandLine::~CommandLine() = default;

void CommandLine::setFooter(const std::string &text) { app_->footer(text); }
void CommandLine::setVersion(const std::string &flag, const std::string &text) { app_->set_version_flag(flag, text); }
void CommandLine::acceptOptionsAnywhere() { app_->fallthrough(); }

std::optional<std::string> CommandLine::parse(int argc, char **argv) {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::CallForHelp &) {
    return help();
  } catch (const CLI::CallForVersion &version) {
    return version.what() + std::string("\n");
  } catch (const CLI::Error &error) {
    throw UsageError(error.what());
  }
}

} // namespace ds::tool
