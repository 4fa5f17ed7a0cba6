# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Installs the packages in the root of the container image, and makes the directories that systemd
# makes elsewhere. Runs in a bare Debian.
apt-get -qq update
# The whole of systemd is not needed for the users of the package.
apt-get -qq install -y --no-install-recommends systemd-standalone-sysusers /packages/*.deb
install -d -o tocsin -g tocsin -m 0750 /run/tocsin /var/lib/tocsin
rm -rf /packages/* /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
