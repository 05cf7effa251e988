//! Finds the programs of the control plane in a list of folders, and says what to do if one is missing. It builds and
//! downloads nothing.

use std::path::PathBuf;

use crate::options::Component;

/// The folders that are looked through.
#[derive(Clone, Debug)]
pub struct Programs {
    folders: Vec<PathBuf>,
    advice: &'static str,
}

/// A program that is nowhere.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{name} is not in {}: {advice}", listed(folders))]
pub struct MissingProgram {
    /// The file name of the program.
    pub name: String,
    /// The folders that were searched.
    pub folders: Vec<PathBuf>,
    /// What to do.
    pub advice: &'static str,
}

impl Programs {
    /// Programs in these folders; `advice` says what to do about one that is in none of them.
    pub fn in_folders(folders: impl IntoIterator<Item = PathBuf>, advice: &'static str) -> Self {
        Self { folders: folders.into_iter().collect(), advice }
    }

    /// A component's program.
    pub fn component(&self, component: Component) -> Result<PathBuf, MissingProgram> {
        self.find(component.name())
    }

    /// A file of this name.
    pub fn find(&self, name: &str) -> Result<PathBuf, MissingProgram> {
        let found = self.folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        let missing = || MissingProgram { name: name.to_owned(), folders: self.folders.clone(), advice: self.advice };
        found.ok_or_else(missing)
    }
}

fn listed(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(" or ")
}
