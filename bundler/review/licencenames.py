"""What packages write for a licence -> SPDX identifiers (https://spdx.org/licenses/).

Only names that mean one licence: `BSD` alone may be two, three or four clauses, and `GPL` alone has no
version, so neither is in the tables.
"""

from __future__ import annotations

import re

_OSI = "License :: OSI Approved :: "
# Trove classifiers (https://pypi.org/classifiers/) that name one licence of one version.
CLASSIFIERS = {
    _OSI + "MIT License": "MIT",
    _OSI + "MIT No Attribution License (MIT-0)": "MIT-0",
    _OSI + "Apache Software License": "Apache-2.0",
    _OSI + "ISC License (ISCL)": "ISC",
    _OSI + "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    _OSI + "Mozilla Public License 1.1 (MPL 1.1)": "MPL-1.1",
    _OSI + "Python Software Foundation License": "PSF-2.0",
    _OSI + "The Unlicense (Unlicense)": "Unlicense",
    _OSI + "Boost Software License 1.0 (BSL-1.0)": "BSL-1.0",
    _OSI + "zlib/libpng License": "Zlib",
    _OSI + "Universal Permissive License (UPL)": "UPL-1.0",
    _OSI + "Historical Permission Notice and Disclaimer (HPND)": "HPND",
    _OSI + "European Union Public Licence 1.2 (EUPL 1.2)": "EUPL-1.2",
    _OSI + "Eclipse Public License 2.0 (EPL-2.0)": "EPL-2.0",
    _OSI + "Eclipse Public License 1.0 (EPL-1.0)": "EPL-1.0",
    _OSI + "Academic Free License (AFL)": "AFL-3.0",
    _OSI + "Blue Oak Model License (BlueOak-1.0.0)": "BlueOak-1.0.0",
    _OSI + "CMU License (MIT-CMU)": "MIT-CMU",
    _OSI + "Zero-Clause BSD (0BSD)": "0BSD",
    _OSI + "GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    _OSI + "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    _OSI + "GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    _OSI + "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    _OSI + "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.0-or-later",
    _OSI + "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    _OSI + "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
    _OSI + "GNU Affero General Public License v3": "AGPL-3.0-only",
    _OSI + "GNU Affero General Public License v3 or later (AGPLv3+)": "AGPL-3.0-or-later",
    "License :: CC0 1.0 Universal (CC0 1.0) Public Domain Dedication": "CC0-1.0",
}  # fmt: skip
# Free texts, as `plain` leaves them.
NAMES = {
    "mit": "MIT", "mit license": "MIT", "the mit license": "MIT", "mit licence": "MIT", "expat": "MIT",
    "the mit license (mit)": "MIT", "expat license": "MIT",
    "apache 2.0": "Apache-2.0", "apache 2": "Apache-2.0", "apache2": "Apache-2.0", "apache-2": "Apache-2.0",
    "apache license 2.0": "Apache-2.0", "apache license, version 2.0": "Apache-2.0",
    "apache license version 2.0": "Apache-2.0", "apache software license 2.0": "Apache-2.0",
    "apache license v2.0": "Apache-2.0", "apache v2": "Apache-2.0", "apache2.0": "Apache-2.0",
    "apache software license": "Apache-2.0", "asl 2.0": "Apache-2.0", "apache-2.0 license": "Apache-2.0",
    "the apache license, version 2.0": "Apache-2.0", "apache software license, version 2.0": "Apache-2.0",
    "bsd 3-clause": "BSD-3-Clause", "bsd 3-clause license": "BSD-3-Clause", "new bsd": "BSD-3-Clause",
    "3-clause bsd": "BSD-3-Clause", "3-clause bsd license": "BSD-3-Clause", "bsd3": "BSD-3-Clause",
    "new bsd license": "BSD-3-Clause", "modified bsd license": "BSD-3-Clause", "bsd 3": "BSD-3-Clause",
    "bsd-3": "BSD-3-Clause", "modified bsd": "BSD-3-Clause", "revised bsd": "BSD-3-Clause",
    "3-clause bsd license (bsd-3-clause)": "BSD-3-Clause",
    "bsd 2-clause": "BSD-2-Clause", "bsd 2-clause license": "BSD-2-Clause", "2-clause bsd": "BSD-2-Clause",
    "simplified bsd": "BSD-2-Clause", "simplified bsd license": "BSD-2-Clause", "bsd-2": "BSD-2-Clause",
    "isc license": "ISC", "isc license (iscl)": "ISC", "iscl": "ISC",
    "mpl 2.0": "MPL-2.0", "mpl2": "MPL-2.0", "mozilla public license 2.0": "MPL-2.0",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0", "mozilla public license, version 2.0": "MPL-2.0",
    "psf": "PSF-2.0", "psfl": "PSF-2.0", "psf license": "PSF-2.0", "psf-2": "PSF-2.0",
    "python software foundation license": "PSF-2.0", "python software foundation": "PSF-2.0",
    "unlicense": "Unlicense", "the unlicense": "Unlicense", "cc0": "CC0-1.0", "cc0 1.0": "CC0-1.0",
    "zlib": "Zlib", "zlib license": "Zlib", "boost software license 1.0": "BSL-1.0",
    "hpnd": "HPND", "mit-cmu": "MIT-CMU", "0bsd": "0BSD",
    "gplv2": "GPL-2.0-only", "gplv2+": "GPL-2.0-or-later", "gplv3": "GPL-3.0-only", "gpl v3": "GPL-3.0-only",
    "gplv3+": "GPL-3.0-or-later", "gnu gpl v3": "GPL-3.0-only", "gnu gplv3": "GPL-3.0-only",
    "lgplv2.1": "LGPL-2.1-only", "lgplv2.1+": "LGPL-2.1-or-later", "lgplv3": "LGPL-3.0-only",
    "lgplv3+": "LGPL-3.0-or-later", "agplv3": "AGPL-3.0-only", "agplv3+": "AGPL-3.0-or-later",
    "nvidia proprietary software": "LicenseRef-NVIDIA-Proprietary",
    "licenseref-nvidia-proprietary": "LicenseRef-NVIDIA-Proprietary",
    "licenseref-nvidia-software-license": "LicenseRef-NVIDIA-Software-License",
}  # fmt: skip
# `license:` of model cards (https://huggingface.co/docs/hub/repositories-licenses) that SPDX spells another
# way or does not have; the rest are SPDX identifiers in lower case.
CARDS = {
    "apache-2.0": "Apache-2.0", "mit": "MIT", "bsd": "", "other": "", "unknown": "",
    "openrail": "LicenseRef-OpenRAIL", "bigscience-openrail-m": "LicenseRef-BigScience-OpenRAIL-M",
    "creativeml-openrail-m": "LicenseRef-CreativeML-OpenRAIL-M",
    "bigscience-bloom-rail-1.0": "LicenseRef-BigScience-BLOOM-RAIL-1.0",
    "bigcode-openrail-m": "LicenseRef-BigCode-OpenRAIL-M", "gemma": "LicenseRef-Gemma",
    "llama2": "LicenseRef-Llama-2", "llama3": "LicenseRef-Llama-3", "llama3.1": "LicenseRef-Llama-3.1",
    "llama3.2": "LicenseRef-Llama-3.2", "llama3.3": "LicenseRef-Llama-3.3",
    "llama4": "LicenseRef-Llama-4", "gfdl": "", "cc": "", "gpl": "", "lgpl": "", "deepfloyd-if-license": "",
}  # fmt: skip
_SPACE = re.compile(r"\s+")


def plain(text: str) -> str:
    """A free text as the tables have it: lower case, single spaces, no quotes around it."""
    return _SPACE.sub(" ", text).strip().strip("\"'").rstrip(".").lower()
