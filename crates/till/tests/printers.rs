//! Receipts over TCP, to printers that take them, dawdle, break off or refuse.

use std::{
    error::Error,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread::{self, JoinHandle},
};
use tempfile::TempDir;
use till::{CashPayment, Printer, Till};
use uuid::Uuid;

type Checked<T = ()> = Result<T, Box<dyn Error>>;

struct Shop {
    till: Till,
    sale_id: Uuid,
    _dir: TempDir,
}

/// A sale that is paid in cash, at a till with this printer.
async fn shop(address: &str) -> Checked<Shop> {
    let dir = tempfile::tempdir()?;
    let till = Till::open(&dir.path().join("data"))?;
    let sale_id = till.add_article("BAK-201", None).await?.id;
    let tender_id = till.begin_tender(sale_id).await?.tender_id;
    till.pay_cash(CashPayment { tender_id, sale_id, tendered: 1_000 }).await?;
    let mut settings = till.printer_settings().await?;
    settings.printer = Printer::tcp(address)?;
    till.save_printer_settings(settings).await?;
    Ok(Shop { till, sale_id, _dir: dir })
}

impl Shop {
    /// Prints where it must fail, and gives the code and the words.
    async fn fault(&self) -> Checked<(&'static str, String)> {
        let before = self.till.sale(self.sale_id).await?;
        let fault = self.till.print_receipt(self.sale_id).await.err().ok_or("it was printed")?;
        assert_eq!(self.till.sale(self.sale_id).await?, before, "a printer never touches a sale");
        Ok((fault.code(), fault.to_string()))
    }
}

type Printing<T> = JoinHandle<std::io::Result<T>>;

/// A printer that takes one job in its own way.
fn printer<T: Send + 'static>(
    take: impl FnOnce(TcpStream) -> std::io::Result<T> + Send + 'static,
) -> Checked<(String, Printing<T>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    Ok((address, thread::spawn(move || take(listener.accept()?.0))))
}

fn joined<T>(printing: Printing<T>) -> Checked<T> {
    Ok(printing.join().map_err(|_| "the printer's thread failed")??)
}

#[tokio::test]
async fn a_file_that_is_no_place_for_receipts_counts_no_print() -> Checked {
    let shop = shop("127.0.0.1:9").await?;
    let (file, folder) = (shop._dir.path().join("receipts.txt"), shop._dir.path().join("receipts"));
    std::fs::write(&file, "a list")?;
    std::fs::create_dir(&folder)?;
    let mut settings = shop.till.printer_settings().await?;
    settings.printer = Printer::File { path: file.clone() };
    shop.till.save_printer_settings(settings.clone()).await?;
    let (code, why) = shop.fault().await?;
    assert!(code == "printer-fault" && why.contains("no folder or device"), "{code}: {why}");
    assert_eq!(std::fs::read_to_string(&file)?, "a list");
    settings.printer = Printer::File { path: folder };
    shop.till.save_printer_settings(settings).await?;
    let printed = shop.till.print_receipt(shop.sale_id).await?;
    assert_eq!((printed.print, printed.copy), (2, 0), "the original still");
    Ok(())
}

#[tokio::test]
async fn a_printer_gets_the_whole_receipt() -> Checked {
    let (address, printing) = printer(|mut stream| {
        let mut taken = Vec::new();
        stream.read_to_end(&mut taken)?;
        // What printers say of themselves is nothing that is waited for.
        stream.write_all(&[0x14, 0, 0, 0x0f])?;
        Ok(taken)
    })?;
    let shop = shop(&address).await?;
    let printed = shop.till.print_receipt(shop.sale_id).await?;
    assert_eq!((printed.print, printed.copy), (1, 0));
    let taken = joined(printing)?;
    assert!(taken.starts_with(b"\x1b@") && taken.ends_with(b"\x1dVB\x00"), "{taken:?}");
    let text = String::from_utf8_lossy(&taken).into_owned();
    assert!(text.contains("Receipt 1") && text.contains("TOTAL EUR"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_printer_that_stays_connected_has_printed() -> Checked {
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let (address, printing) = printer(move |mut stream| {
        let mut taken = Vec::new();
        stream.read_to_end(&mut taken)?;
        // Held until the till has said that it is printed.
        let _ = ended.recv();
        Ok(taken.len())
    })?;
    let shop = shop(&address).await?;
    shop.till.print_receipt(shop.sale_id).await?;
    drop(end);
    assert!(joined(printing)? > 100);
    Ok(())
}

#[tokio::test]
async fn a_refused_connection_is_named_and_the_original_is_still_to_come() -> Checked {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    drop(listener);
    let shop = shop(&address).await?;
    let (code, words) = shop.fault().await?;
    assert_eq!(code, "printer-refused", "{words}");
    assert!(words.contains(&address), "{words}");
    assert_eq!(shop.till.receipt(shop.sale_id).await?.printed, 0);
    Ok(())
}

#[tokio::test]
async fn a_printer_that_breaks_off_may_have_printed() -> Checked {
    let (address, printing) = printer(|mut stream| {
        let mut some = [0; 16];
        // With bytes unread the connection ends by a reset.
        stream.read_exact(&mut some)?;
        drop(stream);
        Ok(())
    })?;
    let shop = shop(&address).await?;
    let (code, words) = shop.fault().await?;
    assert_eq!(code, "printer-disconnected", "{words}");
    joined(printing)?;
    assert_eq!(shop.till.receipt(shop.sale_id).await?.printed, 1, "the next one is a copy");
    Ok(())
}

#[tokio::test]
async fn a_name_that_no_machine_has_is_unreachable() -> Checked {
    let shop = shop("no-such-printer.invalid").await?;
    let (code, words) = shop.fault().await?;
    assert_eq!(code, "printer-unreachable", "{words}");
    Ok(())
}
