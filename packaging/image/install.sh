# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# This script runs in a bare Debian. It installs the packages in the root of the container image,
# and makes the directories that systemd makes on a host.
apt-get -qq update
# This program makes the accounts of the package, so systemd itself is not needed.
apt-get -qq install -y --no-install-recommends systemd-standalone-sysusers /packages/*.deb
install -d -o tocsin -g tocsin -m 0750 /run/tocsin /var/lib/tocsin
rm -rf /packages/* /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
